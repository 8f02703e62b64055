#include "controller/manager/kubernetes_manager.h"

#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/status.h"
#include "controller/engine/state/predicates.h"
#include "controller/manager/pod_agents.h"
#include "controller/platform/kubernetes/client/curl_transport.h"
#include "controller/platform/kubernetes/client/guarded_transport.h"
#include "controller/platform/kubernetes/client/rights.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"

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

bool IsWarning(const Event& event) {
  return std::holds_alternative<RequestRefused>(event.body) || std::holds_alternative<MethodLost>(event.body);
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
    for (const Event& event : engine_.EventsAfter(seen_, kAtOnce, kWait)) {
      seen_ = event.seq;
      if (event.job == JobId()) continue;
      platform_.Tell(event.job, IsWarning(event), ReasonOf(KindOf(event)), Describe(event),
                     absl::StrCat(event.seq));
    }
  }

  const Engine& engine_;
  kubernetes::KubernetesPlatform& platform_;
  int64_t seen_ = 0;
  std::jthread thread_;  // last: ends first
};

class KubernetesSession final : public ClusterManagerSession,
                                public kubernetes::PlatformListener,
                                public AgentEvents {
 public:
  KubernetesSession(Engine& engine, kubernetes::KubernetesPlatform& platform, PodAgents& agents,
                    const Clock& clock, Duration heartbeat)
      : engine_(engine),
        platform_(platform),
        agents_(agents),
        clock_(clock),
        heartbeat_(heartbeat),
        narrator_(engine, platform) {
    agents_.SetBell([this] { platform_.Wake(); });
    platform_.Start(*this);
  }
  ~KubernetesSession() override {
    agents_.SetBell(nullptr);
    platform_.Stop();
    agents_.Leave(*this);
  }

  void OnChanges(ManagerChanges changes) override { engine_.OnManager(std::move(changes)); }
  std::vector<kubernetes::PodTask> OnRound(const kubernetes::ClusterNow& now) override {
    return agents_.Round(now, clock_.Now(), heartbeat_, *this);
  }

  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override {
    return engine_.OnConnected(node, hello);
  }
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override {
    engine_.OnMessage(node, message);
  }
  void OnDisconnected(const NodeId& node) override { engine_.OnDisconnected(node); }

 private:
  Engine& engine_;
  kubernetes::KubernetesPlatform& platform_;
  PodAgents& agents_;
  const Clock& clock_;
  const Duration heartbeat_;
  const Narrator narrator_;
};

class KubernetesManager final : public ClusterManager {
 public:
  KubernetesManager(std::unique_ptr<kubernetes::Transport> transport, const KubernetesConfig& config,
                    Duration heartbeat)
      : heartbeat_(heartbeat),
        platform_(kubernetes::NewKubernetesPlatform(std::move(transport), kubernetes::RealPacer(), clock_,
                                                    OptionsOf(config))) {}
  Platform& platform() override { return *platform_; }
  AgentLink& Around(AgentLink& agents) override { return agents_.emplace(agents); }
  absl::StatusOr<std::unique_ptr<ClusterManagerSession>> Connect(Engine& engine) override {
    return std::make_unique<KubernetesSession>(engine, *platform_, *agents_, clock_, heartbeat_);
  }

 private:
  static kubernetes::PlatformOptions OptionsOf(const KubernetesConfig& config) {
    kubernetes::PlatformOptions options;
    options.left_alone = config.leave_alone;
    options.space = config.space;
    return options;
  }

  const Clock& clock_ = SystemClock();
  const Duration heartbeat_;
  const std::unique_ptr<kubernetes::KubernetesPlatform> platform_;
  std::optional<PodAgents> agents_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterManager>> OpenKubernetesManager(const KubernetesConfig& config,
                                                                      Duration heartbeat,
                                                                      std::function<absl::Status()> may_act) {
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<kubernetes::Transport> transport, Connect(config));
  if (may_act) transport = kubernetes::NewGuardedTransport(std::move(transport), std::move(may_act));
  return std::make_unique<KubernetesManager>(std::move(transport), config, heartbeat);
}

absl::StatusOr<std::vector<std::string>> CheckKubernetes(const KubernetesConfig& config) {
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<kubernetes::Transport> transport, Connect(config));
  kubernetes::ApiClient client(*transport, kubernetes::RealPacer());
  return kubernetes::MissingRights(client, config.space);
}

}  // namespace siding
