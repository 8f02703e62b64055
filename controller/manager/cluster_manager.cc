#include "controller/manager/cluster_manager.h"

#include <utility>

#include "controller/manager/kubernetes_manager.h"
#include "controller/manager/slurm_manager.h"

namespace siding {
namespace {

class OwnQueue final : public ClusterManager {
 public:
  Platform& platform() override { return *platform_; }
  absl::StatusOr<std::unique_ptr<ClusterManagerSession>> Connect(Engine&) override { return nullptr; }

 private:
  const std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterManager>> ClusterManager::Open(const ControllerConfig& config,
                                                                     std::function<absl::Status()> may_act) {
  if (config.slurm.mode != SlurmMode::kOff) return OpenSlurmManager(config.slurm, std::move(may_act));
  if (config.kubernetes.on)
    return OpenKubernetesManager(config.kubernetes, config.state_dir, config.heartbeat, std::move(may_act));
  return std::make_unique<OwnQueue>();
}

absl::StatusOr<std::vector<std::string>> ClusterManager::Check(const ControllerConfig& config) {
  if (config.slurm.mode != SlurmMode::kOff) return CheckSlurm(config.slurm);
  if (config.kubernetes.on) return CheckKubernetes(config.kubernetes);
  return std::vector<std::string>();
}

}  // namespace siding
