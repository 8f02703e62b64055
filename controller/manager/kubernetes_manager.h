// Kubernetes has the queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/manager/cluster_manager.h"

namespace siding {

// As ClusterManager::Open() and Check(). `heartbeat`: how often its nodes are said to be alive.
absl::StatusOr<std::unique_ptr<ClusterManager>> OpenKubernetesManager(const KubernetesConfig& config,
                                                                      Duration heartbeat,
                                                                      std::function<absl::Status()> may_act);
// The rights that siding lacks there.
absl::StatusOr<std::vector<std::string>> CheckKubernetes(const KubernetesConfig& config);

}  // namespace siding
