// sidingd: flags -> configuration -> construct in dependency order -> run -> reverse shutdown.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/manual/manual.h"
#include "common/signals.h"
#include "common/status.h"
#include "common/tls/credentials.h"
#include "common/tls/expiry_watch.h"
#include "controller/api/backup.h"
#include "controller/api/grpc_api.h"
#include "controller/api/service.h"
#include "controller/api/views.h"
#include "controller/config.h"
#include "controller/engine/engine.h"
#include "controller/gateway/gateway.h"
#include "controller/ha/standby.h"
#include "controller/ha/step_down.h"
#include "controller/identity/certificate_identity.h"
#include "controller/identity/munge_identity.h"
#include "controller/journal/journal.h"
#include "controller/journal/lease.h"
#include "controller/manager/cluster_manager.h"
#include "controller/manager/kubernetes_manager.h"
#include "controller/metrics/metrics.h"
#include "controller/metrics/table.h"
#include "controller/notify/open.h"
#include "controller/page_setup.h"
#include "controller/policy_watcher.h"
#include "controller/server.h"
#include "policy/policy_file.h"

namespace siding {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr Duration kClockWasSet = std::chrono::seconds(1);
// Of a node that is silent; an agent of a machine that is busy may be late.
constexpr int kMissedHeartbeats = 5;
constexpr Duration kLeastSilence = std::chrono::seconds(10);
// For a cluster manager to say its settings when the configuration is checked.
constexpr unsigned kSettingsPatience = 5;  // seconds

// Plans take a hundred megabytes for a moment, and each may be made on another of gRPC's threads. By default
// malloc has eight arenas for each core, and every one of them keeps what the largest plan in it took:
// docs/results/load.md. Two are enough, as most of what is done is done under the engine's lock.
constexpr int kMallocArenas = 2;

// How remote callers are known; nullptr if there are none.
std::unique_ptr<Identities> RemoteIdentities(const ControllerConfig& config) {
  if (config.listen.empty()) return nullptr;
  if (config.identity == IdentityBy::kCertificate)
    return std::make_unique<CertificateIdentities>(config.tls.revoked);
  return std::make_unique<MungeIdentities>(
      [socket = config.munge_socket](const std::string& credential) {
        return MungeDecode(credential, socket);
      },
      config.tls.revoked);
}

LeaseOptions LeaseFor(const ControllerConfig& config) {
  return {.journal = JournalOf(config),
          .shared = config.shared_state,
          .address = AddressOf(config),
          .page = PageForBrowsers(config),
          .end_if_stuck = config.standby};
}

// With what SQLite keeps beside it.
int64_t BytesOf(const std::string& journal) {
  int64_t bytes = 0;
  for (const char* suffix : {"", "-wal", "-journal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(journal + suffix, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

// While this controller stands by its page says which one is active.
class StandbyLook final : public StandbyView {
 public:
  explicit StandbyLook(const ControllerConfig& config) : page_(config) {}
  void SetHolder(const LeaseRecord& holder, bool is_here) override {
    page_.Show({HolderOf(holder), holder.host, holder.page, is_here});
  }

 private:
  StandbyPage page_;
};

// Says so whenever the machine's clock has been set.
class ClockWatch {
 public:
  explicit ClockWatch(const SteadyClock& clock) : clock_(clock) {}
  void Look() {
    const Duration off = clock_.Off();
    if (std::chrono::abs(off - told_) < kClockWasSet) return;
    told_ = off;
    spdlog::warn(
        "the machine's clock was set: it is {} {} the time that this controller has counted since its start "
        "and continues with; restart sidingd to follow it",
        FormatDuration(std::chrono::abs(off)), off < Duration(0) ? "behind" : "ahead of");
  }

 private:
  const SteadyClock& clock_;
  Duration told_{0};
};

// For those outside who are told of them.
EventSource EventsOf(const Engine& engine) {
  constexpr Duration kWait = std::chrono::milliseconds(500);
  const auto after = [&engine](int64_t seq, size_t limit) -> absl::StatusOr<std::vector<v1::Event>> {
    SIDING_ASSIGN_OR_RETURN(const std::vector<Event> events, engine.ReadEvents(seq, limit, kWait));
    std::vector<v1::Event> shown;
    for (const Event& event : events) shown.push_back(ShowEvent(event));
    return shown;
  };
  const auto journal = [&engine] {
    EventSource::Journal now;
    engine.Read([&](const ClusterState& state) {
      now = {state.last_seq, ToMicros(state.restored_at), state.copied_until};
    });
    return now;
  };
  return {after, journal};
}

std::vector<ToldCounts> CountsOf(const std::vector<std::unique_ptr<Notifier>>& notifiers) {
  std::vector<ToldCounts> counts;
  for (const auto& notifier : notifiers) counts.push_back(notifier->counts());
  return counts;
}

// Until a signal to stop, or until another controller has taken over or is to, which is an error.
absl::Status Serve(Engine& engine, PolicyWatcher& policy_watcher, Lease& lease, ClockWatch clock_watch,
                   ExpiryWatch& certificate, ActivePage& page, Gateway& gateway, StepDown step_down,
                   const sigset_t& signals) {
  const timespec tick{0, std::chrono::nanoseconds(kTick).count()};
  // SIGHUP: load the policy again, now.
  for (int signal = 0; signal != SIGTERM && signal != SIGINT;
       signal = sigtimedwait(&signals, nullptr, &tick)) {
    TurnLogLevel(signal);
    if (signal == SIGHUP) {
      if (const auto reloaded = policy_watcher.Reload(); !reloaded.ok())
        spdlog::warn("SIGHUP: {}", std::string(reloaded.status().message()));
    }
    SIDING_RETURN_IF_ERROR(lease.standing());
    if (const std::string why = step_down.Check(); !why.empty()) {
      if (const absl::Status given = lease.Release(why); given.ok()) continue;
      spdlog::warn("{}; but the journal could not be released", why);
    }
    policy_watcher.Look();
    clock_watch.Look();
    page.Look();
    gateway.DropRevoked();
    engine.SetCertificateEnd(certificate.Look());
    engine.Tick();
  }
  return absl::OkStatus();
}

absl::Status Run(const ControllerConfig& config, const Policy& policy, const sigset_t& signals) {
  SIDING_RETURN_IF_ERROR(MakeDirectories(config.state_dir, 0700));
  // Not when it takes over: then that is logged, and the cluster has a controller.
  SIDING_RETURN_IF_ERROR(CheckReceivers(config.events_to, SystemClock()));
  // Also while another controller acts.
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<kubernetes::Webhook> webhook,
                          ServeWebhook(config.kubernetes));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Lease> lease, Lease::Open(LeaseFor(config)));
  bool stood_by = false;
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Journal> journal,
                          AwaitJournal(config, *lease, signals, [&config, &stood_by] {
                            stood_by = true;
                            return std::make_unique<StandbyLook>(config);
                          }));
  if (journal == nullptr) return absl::OkStatus();
  spdlog::info("active, with epoch {}", lease->epoch());
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterManager> manager,
                          ClusterManager::Open(config, [&lease] { return lease->Confirm(); }));

  LocalIdentities local(config.limits);
  const std::unique_ptr<Identities> remote = RemoteIdentities(config);
  const IdentitiesByWay identities(local, remote.get());
  Gateway gateway(
      {.heartbeat_interval = config.heartbeat, .epoch = lease->epoch(), .cluster = journal->cluster()},
      identities);
  const SteadyClock clock;
  Engine engine(policy, *journal, manager->platform(), manager->Around(gateway), clock);
  engine.SetRetention(config.retention);
  engine.SetSilence(std::max(kMissedHeartbeats * config.heartbeat, kLeastSilence));
  SIDING_RETURN_IF_ERROR(engine.Start());
  gateway.Attach(manager->Around(static_cast<AgentEvents&>(engine)));
  PolicyWatcher policy_watcher(config.policy, engine, clock);
  // It may have changed while this one stood by.
  if (config.standby && !config.policy.empty()) policy_watcher.Reload().IgnoreError();
  JournalBackup backup(*journal, JournalOf(config));
  ApiService api(engine, policy_watcher, config.limits, &backup);
  GrpcApi grpc_api(api, identities, config.limits);
  const std::vector<std::unique_ptr<Notifier>> notifiers = StartNotifiers(
      config.events_to, {.source = EventsOf(engine),
                         .cluster = absl::StrCat(absl::Hex(journal->cluster(), absl::kZeroPad16)),
                         .folder = config.state_dir + "/events-to",
                         .clock = SystemClock()});
  SIDING_ASSIGN_OR_RETURN(std::unique_ptr<Metrics> metrics,
                          Metrics::Start(config.metrics_address, config.metrics_port,
                                         {.engine = engine,
                                          .lost_messages = [&manager] { return manager->lost_messages(); },
                                          .journal_bytes = [&config] { return BytesOf(JournalOf(config)); },
                                          .calls = [&grpc_api] { return grpc_api.counts().ByResult(); },
                                          .told = [&notifiers] { return CountsOf(notifiers); }}));

  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server,
                          Server::Open(config, local, [&](grpc::ServerBuilder& builder) {
                            builder.RegisterService(&gateway);
                            builder.RegisterService(&grpc_api);
                          }));
  ActivePage page([&] { return ServedPage::Serve(config, api, clock); }, clock);
  SIDING_RETURN_IF_ERROR(page.Start(stood_by));
  SIDING_ASSIGN_OR_RETURN(const auto session, manager->Connect(engine));

  const bool has_tls = !config.listen.empty() || PageHasTls(config);
  ExpiryWatch certificate(has_tls ? config.tls.certificate : "", clock);
  const absl::Status ended = Serve(engine, policy_watcher, *lease, ClockWatch(clock), certificate, page,
                                   gateway, StepDown(config, engine), signals);
  spdlog::info("stopping; jobs continue to run");
  for (const auto& notifier : notifiers) notifier->RequestStop();
  server->Close();
  page.Close();  // orders come by it as well, and are for agents that are still there
  api.Stop();
  gateway.CloseAll();
  server->Finish();
  return ended;
}

void Warn(const std::string& words) { std::cerr << "sidingd: warning: " << words << "\n"; }

// Only warns: the manager's settings may be mended while the controller runs, and it starts with them as
// well.
//
// In a process of its own, which may be ended: systemd checks before each start, so neither a manager that
// does not answer nor a library of Slurm's that ends its process must keep the controller from starting.
void CheckClusterManager(const ControllerConfig& config) {
  const bool is_slurm = config.slurm.mode != SlurmMode::kOff;
  if (!is_slurm && !config.kubernetes.on) return;
  const std::string name = is_slurm ? "slurm: " : "kubernetes: ";
  const pid_t child = fork();
  if (child < 0) return Warn(absl::StrCat(name, "its settings were not checked: fork: ", strerror(errno)));
  if (child == 0) {
    alarm(kSettingsPatience);
    const auto problems = ClusterManager::Check(config);
    if (!problems.ok())
      Warn(absl::StrCat(name, "its settings were not checked: ", problems.status().message()));
    for (const std::string& problem : problems.value_or(std::vector<std::string>())) Warn(name + problem);
    _exit(0);
  }
  int end = 0;
  while (waitpid(child, &end, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(end) && WTERMSIG(end) == SIGALRM)
    Warn(absl::StrCat(name, "its settings were not checked: no answer within ", kSettingsPatience,
                      " seconds"));
  else if (end != 0)
    Warn(name + "its settings were not checked: the process that was to ask for them ended");
}

absl::StatusOr<ControllerConfig> Configure(const std::string& file) {
  return file.empty() ? ControllerConfig() : LoadControllerConfig(file);
}

int Main(int argc, char** argv) {
  mallopt(M_ARENA_MAX, kMallocArenas);  // before there are threads
  CLI::App app("siding's controller: plans preemptions, keeps the journal, tells the node agents what to do");
  std::string file, heartbeat;
  ControllerConfig flags;
  bool check = false;
  app.add_option("--config", file, "YAML file; the flags below override it");
  auto* socket =
      app.add_option("--socket", flags.socket, "unix socket for users and agents")->capture_default_str();
  auto* state =
      app.add_option("--state-dir", flags.state_dir, "where the journal is kept")->capture_default_str();
  auto* shared = app.add_flag("--shared-state", flags.shared_state,
                              "the state folder is on storage that controllers on other hosts see");
  auto* standby =
      app.add_flag("--standby", flags.standby,
                   "stand by while another controller has the journal, and take over when it is gone");
  auto* policy_file = app.add_option("--policy", flags.policy, "policy file (see policies/default.yaml)");
  auto* beat = app.add_option("--heartbeat", heartbeat, "how often agents report, such as 5s");
  auto* port = app.add_option("--metrics-port", flags.metrics_port, "Prometheus metrics; 0: none");
  auto* page = app.add_option(
      "--page", flags.page,
      "127.0.0.1:PORT, or ADDRESS:PORT with TLS, for the operators' page, which shows and changes nothing; "
      "default: none");
  std::vector<std::string> page_names;
  auto* page_name =
      app.add_option("--page-name", page_names, "by which browsers know the page; may be repeated");
  auto* level = app.add_option("--log-level", flags.log_level,
                               "trace, debug, info, warning or error; SIGUSR1: debug, SIGUSR2: this again");
  auto* log_format = app.add_option("--log-format", flags.log_format, "text, or json: an object a line");
  std::string identity;
  auto* listen = app.add_option("--listen", flags.listen,
                                "ADDRESS:PORT for remote agents and users, with TLS; default: none");
  auto* ca =
      app.add_option("--tls-ca", flags.tls.ca, "authority that issues agents' and users' certificates");
  auto* certificate =
      app.add_option("--tls-certificate", flags.tls.certificate, "the controller's certificate");
  auto* key = app.add_option("--tls-key", flags.tls.key, "the key to it");
  auto* revoked = app.add_option("--tls-revoked", flags.tls.revoked,
                                 "certificates that the authority has taken back: its lists (CRLs)");
  auto* by = app.add_option("--identity", identity, "how remote users authenticate: certificate or munge");
  auto* munge = app.add_option("--munge-socket", flags.munge_socket, "munged's socket; default: MUNGE's own");
  app.add_flag("--check-config", check, "check configuration and policy, then exit");
  bool fault_points = false;
  app.add_flag("--fault-points", fault_points, "list the steps at which tests make it fail, then exit");
  bool list_metrics = false;
  app.add_flag("--list-metrics", list_metrics, "list the metrics as a table in Markdown, then exit");
  app.set_version_flag("--version", "sidingd " SIDING_VERSION);
  AddManual(app, {"sidingd", 8, SIDING_VERSION, "/usr/share/doc/siding/admin/sidingd.md"});
  CLI11_PARSE(app, argc, argv);

  const auto fail = [](const absl::Status& status) {
    std::cerr << "sidingd: " << std::string(status.message()) << "\n";
    return 1;
  };
  if (fault_points) {
    std::cout << ListFaultPoints();
    return 0;
  }
  if (list_metrics) {
    std::cout << MetricsTable();
    return 0;
  }
  auto config = Configure(file);
  if (!config.ok()) return fail(config.status());
  if (*socket) config->socket = flags.socket;
  if (*state) config->state_dir = flags.state_dir;
  if (*shared) config->shared_state = flags.shared_state;
  if (*standby) config->standby = flags.standby;
  if (*policy_file) config->policy = flags.policy;
  if (*port) config->metrics_port = flags.metrics_port;
  if (*page) config->page = flags.page;
  if (*page_name) config->page_names.clear();
  for (const std::string& name : page_names) {
    const auto parsed = ParsePageName(name);
    if (!parsed.ok()) return fail(Annotate(parsed.status(), "--page-name"));
    config->page_names.insert(*parsed);
  }
  if (*level) config->log_level = flags.log_level;
  if (*log_format) config->log_format = flags.log_format;
  if (*listen) config->listen = flags.listen;
  if (*ca) config->tls.ca = flags.tls.ca;
  if (*certificate) config->tls.certificate = flags.tls.certificate;
  if (*key) config->tls.key = flags.tls.key;
  if (*revoked) config->tls.revoked = flags.tls.revoked;
  if (*munge) config->munge_socket = flags.munge_socket;
  if (*by) {
    const absl::Status parsed = ParseIdentityBy(identity, config->identity);
    if (!parsed.ok()) return fail(Annotate(parsed, "--identity"));
  }
  if (*beat) {
    const auto parsed = ParseDuration(heartbeat);
    if (!parsed.ok()) return fail(Annotate(parsed.status(), "--heartbeat"));
    config->heartbeat = *parsed;
  }
  if (absl::Status page_address = CheckPage(*config); !page_address.ok()) return fail(page_address);
  auto policy =
      config->policy.empty() ? absl::StatusOr<PolicyFile>(PolicyFile()) : LoadPolicyFile(config->policy);
  if (!policy.ok()) return fail(policy.status());
  const auto format = ParseLogFormat(config->log_format);
  if (!format.ok()) return fail(format.status());
  if (absl::Status logging = SetUpLogging("sidingd", config->log_level, *format); !logging.ok())
    return fail(logging);
  if (absl::Status faults = ArmFaults(); !faults.ok()) return fail(faults);
  TakeOverGrpcLog();
  if (check) {
    if (const auto credentials = RemoteCredentials(*config); !credentials.ok())
      return fail(credentials.status());
    if (const absl::Status receivers = CheckReceivers(config->events_to, SystemClock()); !receivers.ok())
      return fail(receivers);
    CheckClusterManager(*config);
    std::cout << "configuration and policy are good\n";
    return 0;
  }

  sigset_t signals = BlockServiceSignals();
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  const absl::Status status = Run(*config, policy->policy, signals);
  return status.ok() ? 0 : fail(status);
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
