#include "controller/manager/kubernetes_manager.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/status.h"
#include "controller/manager/outlook.h"
#include "controller/platform/kubernetes/client/curl_transport.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "controller/platform/kubernetes/client/rights.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"
#include "controller/platform/kubernetes/objects/admission.h"
#include "controller/platform/kubernetes/reconcile/seal_file.h"
#include "controller/platform/kubernetes/speak/pod_speaker.h"

namespace siding {
namespace {

absl::StatusOr<std::unique_ptr<kubernetes::Transport>> Connect(const KubernetesConfig& config) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  SIDING_ASSIGN_OR_RETURN(
      kubernetes::ServerSettings settings,
      config.kubeconfig.empty()
          ? kubernetes::FromServiceAccount(kubernetes::kServiceAccount, variable("KUBERNETES_SERVICE_HOST"),
                                           variable("KUBERNETES_SERVICE_PORT"))
          : kubernetes::FromKubeconfig(config.kubeconfig));
  return kubernetes::NewCurlTransport(std::move(settings));
}

// "order-kill" -> "SidingOrderKill", as kubectl shows reasons.
std::string ReasonOf(const std::string& kind) {
  std::string reason = "Siding";
  for (const absl::string_view word : absl::StrSplit(kind, '-')) {
    absl::StrAppend(&reason, word);
    char& first = reason[reason.size() - word.size()];
    if (!word.empty()) first = absl::ascii_toupper(static_cast<unsigned char>(first));
  }
  return reason;
}

// Says on pods what the engine records of their jobs.
class Narrator {
 public:
  Narrator(const Engine& engine, kubernetes::KubernetesPlatform& platform)
      : engine_(engine), platform_(platform) {
    engine.Read([&](const ClusterState& state) { seen_ = state.last_seq; });
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) Tell();
    });
  }

 private:
  static constexpr size_t kAtOnce = 100;
  static constexpr Duration kWait = std::chrono::milliseconds(500);

  void Tell() {
    const auto events = engine_.ReadEvents(seen_, kAtOnce, kWait);
    if (!events.ok()) return std::this_thread::sleep_for(kWait);  // they are read again
    for (const Event& event : *events) {
      seen_ = event.seq;
      if (event.job == JobId()) continue;
      std::optional<Preemption> preemption;
      engine_.Read([&](const ClusterState& state) { preemption = PreemptionIn(event, state); });
      if (preemption) {
        platform_.Tell(event.job, false, "SidingPreempted",
                       Describe(*preemption, platform_.WhoIs(preemption->by)),
                       absl::StrCat(event.seq, " preempted"));
      }
      platform_.Tell(event.job, IsWarning(event), ReasonOf(KindOf(event)), Describe(event),
                     absl::StrCat(event.seq));
    }
  }

  const Engine& engine_;
  kubernetes::KubernetesPlatform& platform_;
  int64_t seen_ = 0;
  std::jthread thread_;  // last: ends first
};

class KubernetesSession final : public ClusterManagerSession, public kubernetes::PlatformListener {
 public:
  KubernetesSession(Engine& engine, kubernetes::KubernetesPlatform& platform,
                    kubernetes::NodeSpeaker& speaker)
      : engine_(engine), platform_(platform), narrator_(engine, platform) {
    platform_.Start(*this, speaker);
  }
  ~KubernetesSession() override { platform_.Stop(); }

  void OnChanges(ManagerChanges changes) override { engine_.OnManager(std::move(changes)); }
  std::optional<kubernetes::Outlook> OutlookOf(JobId id) override {
    std::optional<kubernetes::Outlook> outlook;
    engine_.Read([&](const ClusterState& state) {
      if (const auto job = state.jobs.find(id); job != state.jobs.end())
        outlook = siding::OutlookOf(job->second);
    });
    return outlook;
  }
  std::vector<kubernetes::CheckpointView> CheckpointsKept() override {
    std::vector<kubernetes::CheckpointView> kept;
    engine_.Read([&](const ClusterState& state) { kept = CheckpointsOf(state); });
    return kept;
  }
  JobId HighestJob() override {
    JobId highest{0};
    engine_.Read([&](const ClusterState& state) {
      if (!state.jobs.empty()) highest = state.jobs.rbegin()->first;
    });
    return highest;
  }

 private:
  Engine& engine_;
  kubernetes::KubernetesPlatform& platform_;
  const Narrator narrator_;
};

class KubernetesManager final : public ClusterManager {
 public:
  KubernetesManager(std::unique_ptr<kubernetes::Transport> transport, const KubernetesConfig& config,
                    const std::string& state_dir, Duration heartbeat)
      : seal_(state_dir + "/kubernetes-seal"),
        heartbeat_(heartbeat),
        saves_(config.saves),
        platform_(kubernetes::NewKubernetesPlatform(std::move(transport), kubernetes::RealPacer(), clock_,
                                                    OptionsOf(config, seal_))) {}
  Platform& platform() override { return *platform_; }
  int64_t lost_messages() const override { return platform_->lost_events(); }
  AgentLink& Around(AgentLink& agents) override {
    speaker_ = kubernetes::NewPodSpeaker(saves_, agents, heartbeat_);
    return *speaker_;
  }
  AgentEvents& Around(AgentEvents& engine) override {
    speaker_->SetEngine(engine);
    return *speaker_;
  }
  absl::StatusOr<std::unique_ptr<ClusterManagerSession>> Connect(Engine& engine) override {
    return std::make_unique<KubernetesSession>(engine, *platform_, *speaker_);
  }

 private:
  static kubernetes::PlatformOptions OptionsOf(const KubernetesConfig& config, kubernetes::SealKeeper& seal) {
    kubernetes::PlatformOptions options;
    options.left_alone = config.leave_alone;
    options.space = config.space;
    options.saves = config.saves;
    options.host_paths = config.host_paths;
    options.seal_keeper = &seal;
    return options;
  }

  const SteadyClock
      clock_;  // pauses and beats must not end, or fall due at once, where the time of day jumps
  kubernetes::SealFile seal_;
  const Duration heartbeat_;
  const bool saves_;
  const std::unique_ptr<kubernetes::KubernetesPlatform> platform_;
  std::unique_ptr<kubernetes::PodSpeaker> speaker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterManager>> OpenKubernetesManager(const KubernetesConfig& config,
                                                                      const std::string& state_dir,
                                                                      Duration heartbeat,
                                                                      std::function<absl::Status()> may_act) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<kubernetes::Transport> transport, Connect(config));
  if (may_act) transport = kubernetes::NewGuardedTransport(std::move(transport), std::move(may_act));
  return std::make_unique<KubernetesManager>(std::move(transport), config, state_dir, heartbeat);
}

absl::StatusOr<std::vector<std::string>> CheckKubernetes(const KubernetesConfig& config) {
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<kubernetes::Transport> transport, Connect(config));
  kubernetes::ApiClient client(*transport, kubernetes::RealPacer());
  return kubernetes::MissingRights(client, config.space);
}

absl::StatusOr<std::unique_ptr<kubernetes::Webhook>> ServeWebhook(const KubernetesConfig& config) {
  const WebhookConfig& files = config.webhook;
  if (!config.on || files.port == 0) return nullptr;
  const kubernetes::AdmissionRules rules{config.leave_alone, config.saves, config.host_paths};
  return kubernetes::Webhook::Start(
      {files.address, files.port, files.certificate, files.key},
      [rules](const std::string& body) -> absl::StatusOr<std::string> {
        SIDING_ASSIGN_OR_RETURN(const kubernetes::Json review, kubernetes::ParseJson(body));
        SIDING_ASSIGN_OR_RETURN(const kubernetes::Json answer,
                                kubernetes::AnswerReview(review, rules, SystemClock().Now()));
        return kubernetes::WriteJson(answer);
      });
}

}  // namespace siding
