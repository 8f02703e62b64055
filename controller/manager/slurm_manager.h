// Slurm has the queue.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/manager/cluster_manager.h"

namespace siding {

// As ClusterManager::Open() and Check().
absl::StatusOr<std::unique_ptr<ClusterManager>> OpenSlurmManager(const SlurmConfig& config,
                                                                 std::function<absl::Status()> may_act);
absl::StatusOr<std::vector<std::string>> CheckSlurm(const SlurmConfig& config);

}  // namespace siding
