// sidingd: flags -> configuration -> construct in dependency order -> run -> reverse shutdown.
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <thread>

#include "common/files.h"
#include "common/logging.h"
#include "common/signals.h"
#include "common/status.h"
#include "controller/api/local_identity.h"
#include "controller/api/service.h"
#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/gateway/gateway.h"
#include "controller/journal/journal.h"
#include "controller/metrics/metrics.h"
#include "controller/policy_watcher.h"
#include "controller/site.h"
#include "policy/policy_file.h"

namespace siding {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr auto kShutdownGrace = std::chrono::seconds(3);

// Passes what the gateway hears on to the engine.
class EngineAgentEvents final : public AgentEvents {
 public:
  explicit EngineAgentEvents(Engine& engine) : engine_(engine) {}
  absl::Status OnConnected(const NodeId& node, const v1::Hello& hello) override {
    return engine_.OnConnected(node, hello);
  }
  void OnMessage(const NodeId& node, const v1::FromAgent& message) override {
    engine_.OnMessage(node, message);
  }
  void OnDisconnected(const NodeId& node) override { engine_.OnDisconnected(node); }

 private:
  Engine& engine_;
};

absl::Status Run(const ControllerConfig& config, const Policy& policy, const sigset_t& signals) {
  SIDING_RETURN_IF_ERROR(MakeDirectories(config.state_dir, 0700));
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Journal> journal,
                          OpenSqliteJournal(config.state_dir + "/journal.db"));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Site> site, Site::Open(config.slurm));

  // It starts last, but must outlive the server, whose last handlers still ask who is calling.
  std::unique_ptr<LocalListener> listener;
  const auto identify = [&listener](const std::string& peer) { return listener->Of(peer); };
  const auto may_serve = [&identify](const std::string& peer) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(PeerIdentity identity, identify(peer));
    if (identity.uid == 0 || identity.uid == geteuid()) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("user ", identity.user, " may not run an agent"));
  };
  Gateway gateway({.heartbeat_interval = config.heartbeat, .may_serve = may_serve});
  Engine engine(policy, *journal, site->platform(), gateway, SystemClock());
  SIDING_RETURN_IF_ERROR(engine.Start());
  EngineAgentEvents events(engine);
  gateway.Attach(events);
  PolicyWatcher policy_watcher(config.policy, engine, SystemClock());
  ApiService api(engine, policy_watcher, identify, config.limits);
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Metrics> metrics, Metrics::Start(config.metrics_port, engine));

  grpc::ServerBuilder builder;
  // However many callers there are: beyond this they are refused, and the process lives.
  grpc::ResourceQuota quota;
  quota.SetMaxThreads(config.limits.threads);
  builder.SetResourceQuota(quota);
  builder.RegisterService(&gateway);
  builder.RegisterService(&api);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError("the gRPC server did not start");

  SIDING_RETURN_IF_ERROR(MakeDirectories(config.socket.substr(0, config.socket.rfind('/') + 1)));
  SIDING_ASSIGN_OR_RETURN(listener, LocalListener::Listen(config.socket, config.limits, [&server](int fd) {
                            grpc::AddInsecureChannelFromFd(server.get(), fd);
                          }));
  spdlog::info("listening on {}", config.socket);
  SIDING_ASSIGN_OR_RETURN(const auto watching, site->Watch(engine));

  const timespec tick{0, std::chrono::nanoseconds(kTick).count()};
  // SIGHUP: load the policy again, now.
  for (int signal = 0; signal != SIGTERM && signal != SIGINT;
       signal = sigtimedwait(&signals, nullptr, &tick)) {
    if (signal == SIGHUP) {
      if (const auto reloaded = policy_watcher.Reload(); !reloaded.ok())
        spdlog::warn("SIGHUP: {}", std::string(reloaded.status().message()));
    }
    policy_watcher.Look();
    engine.Tick();
  }

  spdlog::info("stopping; jobs go on running");
  listener->Stop();
  api.Stop();
  gateway.CloseAll();
  server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  server->Wait();
  return absl::OkStatus();
}

absl::StatusOr<ControllerConfig> Configure(const std::string& file) {
  return file.empty() ? ControllerConfig() : LoadControllerConfig(file);
}

int Main(int argc, char** argv) {
  CLI::App app("siding's controller: plans preemptions, keeps the journal, tells the node agents what to do");
  std::string file, heartbeat;
  ControllerConfig flags;
  bool check = false;
  app.add_option("--config", file, "YAML file; the flags below override it");
  auto* socket =
      app.add_option("--socket", flags.socket, "unix socket for users and agents")->capture_default_str();
  auto* state =
      app.add_option("--state-dir", flags.state_dir, "where the journal is kept")->capture_default_str();
  auto* policy_file = app.add_option("--policy", flags.policy, "policy file (see policies/default.yaml)");
  auto* beat = app.add_option("--heartbeat", heartbeat, "how often agents report, such as 5s");
  auto* port =
      app.add_option("--metrics-port", flags.metrics_port, "Prometheus metrics on 127.0.0.1; 0: none");
  auto* level = app.add_option("--log-level", flags.log_level, "trace, debug, info, warning or error");
  app.add_flag("--check-config", check, "check configuration and policy, then exit");
  app.set_version_flag("--version", "sidingd " SIDING_VERSION);
  CLI11_PARSE(app, argc, argv);

  const auto fail = [](const absl::Status& status) {
    std::cerr << "sidingd: " << std::string(status.message()) << "\n";
    return 1;
  };
  auto config = Configure(file);
  if (!config.ok()) return fail(config.status());
  if (*socket) config->socket = flags.socket;
  if (*state) config->state_dir = flags.state_dir;
  if (*policy_file) config->policy = flags.policy;
  if (*port) config->metrics_port = flags.metrics_port;
  if (*level) config->log_level = flags.log_level;
  if (*beat) {
    const auto parsed = ParseDuration(heartbeat);
    if (!parsed.ok()) return fail(Annotate(parsed.status(), "--heartbeat"));
    config->heartbeat = *parsed;
  }
  auto policy =
      config->policy.empty() ? absl::StatusOr<PolicyFile>(PolicyFile()) : LoadPolicyFile(config->policy);
  if (!policy.ok()) return fail(policy.status());
  if (absl::Status logging = SetUpLogging("sidingd", config->log_level); !logging.ok()) return fail(logging);
  if (check) {
    std::cout << "configuration and policy are good\n";
    return 0;
  }

  sigset_t signals = BlockStopSignals();
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  const absl::Status status = Run(*config, policy->policy, signals);
  return status.ok() ? 0 : fail(status);
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
