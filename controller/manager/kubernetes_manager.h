// Kubernetes has the queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/manager/cluster_manager.h"
#include "controller/platform/kubernetes/webhook.h"

namespace siding {

// As ClusterManager::Open() and Check(). `heartbeat`: how often its nodes are said to be alive.
// `state_dir`: where the journal is.
absl::StatusOr<std::unique_ptr<ClusterManager>> OpenKubernetesManager(const KubernetesConfig& config,
                                                                      const std::string& state_dir,
                                                                      Duration heartbeat,
                                                                      std::function<absl::Status()> may_act);
// The rights that siding lacks there.
absl::StatusOr<std::vector<std::string>> CheckKubernetes(const KubernetesConfig& config);

// Answers what the API server asks before it stores what users write; nullptr: it is not to be asked. By a
// controller that stands by as well.
absl::StatusOr<std::unique_ptr<kubernetes::Webhook>> ServeWebhook(const KubernetesConfig& config);

}  // namespace siding
