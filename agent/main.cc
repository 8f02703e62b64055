// siding-agent: flags -> options -> construct -> run -> reverse shutdown. Jobs run on when it stops.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "agent/link/link.h"
#include "agent/link/seen_epoch.h"
#include "agent/network/gang_address.h"
#include "agent/node/local_task_host.h"
#include "agent/slurm/listener.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/manual/manual.h"
#include "common/signals.h"
#include "common/status.h"
#include "common/tls/credentials.h"
#include "common/tls/endpoint.h"

namespace siding {
namespace {

// One of them will be active within seconds.
constexpr Duration kLongestPauseOfSeveral = std::chrono::seconds(1);

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

int64_t MachineMemory() {
  struct sysinfo info {};
  sysinfo(&info);
  return static_cast<int64_t>(info.totalram) * info.mem_unit;
}

// Takes nothing: --check only wants to know what the host says of itself.
class NoSink final : public ReportSink {
 public:
  void Send(v1::FromAgent) override {}
};

// In a folder of its own: another agent may be at work in that of the node, with its tasks and tiers.
int Check(TaskHostOptions options) {
  NoSink sink;
  char folder[] = "/tmp/siding-check-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    std::cerr << "siding-agent: " << folder << ": " << strerror(errno) << "\n";
    return 1;
  }
  options.state_dir = folder;
  options.local_dir.clear();
  options.shared_dir.clear();
  auto host = NewTaskHost(std::move(options), sink, SystemClock());
  const absl::Cleanup remove = [&] {
    if (host.ok()) host->reset();
    std::error_code none;
    std::filesystem::remove_all(folder, none);
  };
  if (!host.ok()) {
    std::cerr << "siding-agent: " << std::string(host.status().message()) << "\n";
    return 1;
  }
  const v1::Hello hello = (*host)->Describe();
  std::cout << "node " << hello.node() << ": " << hello.capacity().slots() << " slots, "
            << FormatBytes(Bytes{hello.capacity().memory()}) << ", " << hello.capacity().gpus() << " GPUs\n";
  for (const v1::Gpu& gpu : hello.gpus()) std::cout << "GPU: " << gpu.name() << ", " << gpu.uuid() << "\n";
  if (!hello.gpu_problem().empty()) std::cout << "GPUs: " << hello.gpu_problem() << "\n";
  if (!hello.fence_problem().empty()) std::cout << "fence: " << hello.fence_problem() << "\n";
  if (!hello.no_network().empty()) std::cout << "connections: not kept, " << hello.no_network() << "\n";
  if (hello.criu_problem().empty()) {
    std::cout << "criu: " << hello.criu() << "\n";
    return 0;
  }
  std::cout << "criu: " << hello.criu_problem() << "\n";
  return 1;
}

// Over the network only with certificates, which are checked here once and then before each connection.
// `others`: there are other controllers to turn to.
absl::StatusOr<LinkTarget> TargetOf(const std::string& controller, bool others, const TlsFiles& tls) {
  const Endpoint endpoint = ParseEndpoint(controller);
  LinkTarget target{endpoint.target};
  if (others) {
    KeepAliveClosely(target.arguments);
  } else if (endpoint.remote) {
    KeepAlive(target.arguments);
  }
  if (!endpoint.remote) return target;
  if (tls.ca.empty() || tls.certificate.empty() || tls.key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--ca, --certificate and --key are needed to reach the controller at ", controller));
  }
  target.credentials = [tls] { return TlsChannelCredentials(tls, SystemClock()); };
  SIDING_RETURN_IF_ERROR(target.credentials().status());
  return target;
}

absl::StatusOr<LinkOptions> LinkTo(const std::vector<std::string>& controllers, const TlsFiles& tls) {
  LinkOptions options;
  const bool others = controllers.size() > 1;
  for (const std::string& controller : controllers) {
    SIDING_ASSIGN_OR_RETURN(LinkTarget target, TargetOf(controller, others, tls));
    options.controllers.push_back(std::move(target));
  }
  if (others) options.pause = DialPause(std::random_device{}(), DialPause::kFirst, kLongestPauseOfSeveral);
  return options;
}

absl::StatusOr<ScrubOptions> ScrubBy(const std::string& interval, const std::string& rate) {
  ScrubOptions options;
  const auto bytes = ParseBytes(rate);
  if (!bytes.ok()) return Annotate(bytes.status(), "--scrub-rate");
  if (bytes->value == 0) return absl::InvalidArgumentError("--scrub-rate: expected more than 0");
  options.rate = *bytes;
  if (interval == "off") return options;
  const auto parsed = ParseDuration(interval);
  if (!parsed.ok()) return Annotate(parsed.status(), "--scrub-interval");
  if (*parsed < std::chrono::minutes(1))
    return absl::InvalidArgumentError("--scrub-interval: expected off, or 1m or more");
  options.interval = *parsed;
  return options;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "siding's node agent: launches tasks, and freezes, dumps, restores and ends them when told to");
  TaskHostOptions options;
  options.node = HostName();
  options.state_dir = "/var/lib/siding/agent";
  TlsFiles tls;
  std::vector<std::string> controllers{"/run/siding/siding.sock"};
  std::string level = "info", log_format = "text", memory, slurm_socket;
  std::string scrub_interval = "1d", scrub_rate = "16MiB", encryption_key;
  int slots = static_cast<int>(std::thread::hardware_concurrency()), gpus = -1;
  bool check = false;
  app.add_option("--node", options.node, "this node's name")->default_str("this machine's");
  app.add_option("--controller", controllers,
                 "the controller's unix socket, or its HOST:PORT; with commas, those that may be active")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--ca", tls.ca, "with HOST:PORT: the authority that issued the controller's certificate");
  app.add_option("--certificate", tls.certificate,
                 "with HOST:PORT: this node's certificate (sidingctl certs node)");
  app.add_option("--key", tls.key, "with HOST:PORT: the key to it");
  app.add_option("--revoked", tls.revoked,
                 "with HOST:PORT: certificates that the authority has taken back: its lists (CRLs)");
  app.add_option("--state-dir", options.state_dir, "tasks and local checkpoints")->capture_default_str();
  app.add_option(
      "--local-dir", options.local_dir,
      "folder for local checkpoints, of this node alone; in memory where a tmpfs is mounted there; "
      "default: store in the --state-dir");
  app.add_option("--shared-dir", options.shared_dir, "folder that all nodes see, for shared checkpoints");
  app.add_option("--slots", slots, "how many slots jobs may use; default: one per core")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option(
      "--memory", memory,
      "memory that jobs may use, such as 64GiB; default: all, without what a --local-dir in memory may take");
  GpuLibraries libraries;
  app.add_option("--gpus", gpus, "GPUs that jobs may use; default: all")->check(CLI::Range(0, 1024));
  app.add_option("--gpu", options.gpu_uuids,
                 "UUID of a GPU that jobs may use, as often as needed; default: all");
  bool no_huge_pages = false;
  app.add_flag("--no-huge-pages", no_huge_pages,
               "keep the kernel's setting for huge pages while GPUs are drained, which then takes longer");
  app.add_option("--cuda-library", libraries.cuda, "the GPU driver's library")->capture_default_str();
  app.add_option("--nvml-library", libraries.nvml, "the GPU management library")->capture_default_str();
  app.add_option("--criu", options.criu_path, "criu to use; default: the first that works here");
  app.add_option("--slurm-socket", slurm_socket,
                 "where Slurm's plugin registers tasks, such as /run/siding/slurm.sock; default: none");
  app.add_option(
      "--pods-socket", options.pods_socket,
      "where siding-runc says that it makes a container, such as /run/siding/pods.sock: this node's pods "
      "can be frozen and saved; default: none");
  app.add_option("--runc", options.runc, "with --pods-socket: the program; default: that in PATH");
  app.add_option("--gang-address", options.gang_address,
                 "address of this node at which the networks of jobs that keep their connections are reached "
                 "from other nodes; default: that from which this node reaches the controller");
  app.add_option("--gang-port", options.gang_port,
                 "UDP port of these networks (VXLAN), the same on all nodes")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--scrub-interval", scrub_interval,
                 "how often to read back the checkpoints that this node made, such as 1d; off: never")
      ->capture_default_str();
  app.add_option("--scrub-rate", scrub_rate, "how much of them to read in a second at most")
      ->capture_default_str();
  app.add_option(
      "--encryption-key", encryption_key,
      "file with the key that new checkpoints are encrypted with; without a slash: a systemd credential");
  app.add_option("--plain-dir", options.plain_dir,
                 "with --encryption-key: where checkpoints lie before they are encrypted and while they are "
                 "restored, best in memory; default: plain in the --state-dir");
  app.add_option("--log-level", level,
                 "trace, debug, info, warning or error; SIGUSR1: debug, SIGUSR2: this again")
      ->capture_default_str();
  app.add_option("--log-format", log_format, "text, or json: an object a line")->capture_default_str();
  app.add_flag("--check", check, "say what works on this machine, then exit");
  std::string fence = "memory,pids";
  app.add_option("--fence", fence,
                 "limits of tasks that cgroups enforce: memory (the job's --memory), pids, both, or none")
      ->capture_default_str();
  app.add_option(
         "--task-pids", options.task_processes,
         "processes and threads that a task may have; default: 1024 for each of its slots, at least 4096")
      ->check(CLI::Range(1, 1 << 22));
  app.add_option(
         "--rehearse", options.rehearsals,
         "checkpoints of running jobs to rehearse the restore of: never, the first of a job, or always")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Rehearsals>{
          {"never", Rehearsals::kNever}, {"first", Rehearsals::kFirst}, {"always", Rehearsals::kAlways}}))
      ->default_str("never");
  bool fault_points = false;
  app.add_flag("--fault-points", fault_points, "list the steps at which tests make it fail, then exit");
  app.set_version_flag("--version", "siding-agent " SIDING_VERSION);
  AddManual(app, {"siding-agent", 8, SIDING_VERSION, "/usr/share/doc/siding/admin/nodes.md"});
  CLI11_PARSE(app, argc, argv);

  const auto fail = [](const absl::Status& status) {
    std::cerr << "siding-agent: " << std::string(status.message()) << "\n";
    return 1;
  };
  if (fault_points) {
    std::cout << ListFaultPoints();
    return 0;
  }
  int64_t bytes = MachineMemory();
  if (!memory.empty()) {
    const auto parsed = ParseBytes(memory);
    if (!parsed.ok()) return fail(Annotate(parsed.status(), "--memory"));
    bytes = parsed->value;
  }
  options.all_memory = memory.empty();
  if (std::error_code none; std::filesystem::equivalent(options.local_dir, options.shared_dir, none))
    return fail(absl::InvalidArgumentError("--local-dir: expected another folder than --shared-dir"));
  const auto scrub = ScrubBy(scrub_interval, scrub_rate);
  if (!scrub.ok()) return fail(scrub.status());
  options.scrub = *scrub;
  if (!encryption_key.empty()) {
    auto keys = store::KeyRing::Load(encryption_key);
    if (!keys.ok()) return fail(Annotate(keys.status(), "--encryption-key"));
    options.keys = std::make_shared<const store::KeyRing>(*std::move(keys));
  }
  const auto fenced = ParseFence(fence);
  if (!fenced.ok()) return fail(Annotate(fenced.status(), "--fence"));
  options.fence = *fenced;
  options.capacity.set_slots(slots);
  options.capacity.set_memory(bytes);
  options.capacity.set_gpus(gpus);
  if (gpus != 0) options.gpu_libraries = libraries;
  options.huge_pages = !no_huge_pages;
  if (!slurm_socket.empty() && !options.pods_socket.empty())
    return fail(absl::InvalidArgumentError("--pods-socket: expected not beside --slurm-socket"));
  options.cluster_manager = !slurm_socket.empty() || !options.pods_socket.empty();
  const auto format = ParseLogFormat(log_format);
  if (!format.ok()) return fail(format.status());
  if (absl::Status logging = SetUpLogging("siding-agent", level, *format); !logging.ok())
    return fail(logging);
  if (absl::Status faults = ArmFaults({"shim"}); !faults.ok()) return fail(faults);
  TakeOverGrpcLog();
  if (check) return Check(std::move(options));
  auto link_options = LinkTo(controllers, tls);
  if (!link_options.ok()) return fail(link_options.status());

  MakeDirectories(options.state_dir, 0700).IgnoreError();  // the host will say what is wrong with it
  auto seen_epoch = SeenEpoch::Open(options.state_dir + "/epoch");
  if (!seen_epoch.ok()) return fail(seen_epoch.status());
  link_options->accept = [&seen_epoch](int64_t epoch) { return seen_epoch->Accept(epoch); };

  if (!options.gang_address.empty()) {
    const auto address = ParseIp(options.gang_address);
    if (!address.ok()) return fail(Annotate(address.status(), "--gang-address"));
  }
  options.certificate = tls.certificate;
  options.gang_towards = controllers;
  const sigset_t signals = BlockServiceSignals();

  Link link(std::move(*link_options));
  const auto found = NewTaskHost(std::move(options), link, SystemClock());
  if (!found.ok()) return fail(found.status());
  TaskHost& host = **found;
  absl::StatusOr<std::unique_ptr<SlurmListener>> listener = nullptr;
  if (!slurm_socket.empty()) listener = SlurmListener::Start(slurm_socket, host);
  if (!listener.ok()) return fail(Annotate(listener.status(), "--slurm-socket"));
  link.Start(host);
  int received = SIGUSR2;
  do sigwait(&signals, &received);
  while (TurnLogLevel(received));
  spdlog::info("stopping; jobs continue to run");
  listener->reset();
  link.Stop();
  return 0;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
