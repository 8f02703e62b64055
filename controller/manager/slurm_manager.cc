#include "controller/manager/slurm_manager.h"

#include <utility>

#include "common/status.h"
#include "controller/identity/accounts.h"
#include "controller/platform/slurm/client/open.h"
#include "controller/platform/slurm/client/settings.h"
#include "controller/platform/slurm/slurm_platform.h"
#include "controller/platform/slurm/submit/question_listener.h"

namespace siding {
namespace {

class EngineAnswers final : public slurm::Answerer {
 public:
  EngineAnswers(Engine& engine, const slurm::SlurmPlatform& platform)
      : engine_(engine), platform_(platform) {}
  absl::StatusOr<Time> WhenWouldItStart(const slurm::Question& question) override {
    SIDING_ASSIGN_OR_RETURN(JobSpec spec, slurm::SpecOf(question));
    spec.user = UserName(spec.uid);
    platform_.Complete(spec);
    return engine_.WouldStart({spec.uid, spec.user, engine_.IsOperator(spec.user)}, spec);
  }

 private:
  Engine& engine_;
  const slurm::SlurmPlatform& platform_;
};

class SlurmSession final : public ClusterManagerSession {
 public:
  SlurmSession(Engine& engine, slurm::SlurmPlatform& platform)
      : platform_(platform), answers_(engine, platform) {
    platform_.Start([&engine](ManagerChanges changes) { engine.OnManager(std::move(changes)); });
  }
  ~SlurmSession() override { platform_.Stop(); }
  absl::Status Listen(const std::string& socket) {
    SIDING_ASSIGN_OR_RETURN(listener_, slurm::QuestionListener::Start(socket, answers_));
    return absl::OkStatus();
  }

 private:
  slurm::SlurmPlatform& platform_;
  EngineAnswers answers_;
  std::unique_ptr<slurm::QuestionListener> listener_;
};

class SlurmManager final : public ClusterManager {
 public:
  SlurmManager(const SlurmConfig& config, std::unique_ptr<slurm::SlurmPlatform> platform)
      : config_(config), platform_(std::move(platform)) {}
  Platform& platform() override { return *platform_; }
  absl::StatusOr<std::unique_ptr<ClusterManagerSession>> Connect(Engine& engine) override {
    auto session = std::make_unique<SlurmSession>(engine, *platform_);
    SIDING_RETURN_IF_ERROR(session->Listen(config_.ask_socket));
    return session;
  }

 private:
  const SlurmConfig config_;
  const std::unique_ptr<slurm::SlurmPlatform> platform_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterManager>> OpenSlurmManager(const SlurmConfig& config,
                                                                 std::function<absl::Status()> may_act) {
  const slurm::PlatformOptions options{config.backend, config.interval, config.mode == SlurmMode::kSteering,
                                       config.suspend, UserName,        std::move(may_act)};
  SIDING_ASSIGN_OR_RETURN(auto platform, slurm::OpenSlurmPlatform(options, SystemClock()));
  return std::make_unique<SlurmManager>(config, std::move(platform));
}

absl::StatusOr<std::vector<std::string>> CheckSlurm(const SlurmConfig& config) {
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<slurm::Client> client, slurm::OpenClient(config.backend));
  SIDING_ASSIGN_OR_RETURN(const slurm::Settings settings, client->LoadSettings());
  return slurm::ProblemsOf(settings);
}

}  // namespace siding
