// What does the controller need for a cluster of a thousand nodes? Starts the real sidingd and connects N
// simulated agents to it over its real socket, each with a connection of its own; they register, take 10
// jobs each, and send heartbeats with the state of all their tasks every 5 s. Then as many jobs again wait in
// the queue, and a request takes 1/16 of the nodes. Prints the controller's CPU time and memory for each
// phase, beside the bound. Simulated is what an agent does with a command: it reports at once that it is
// done, and nothing runs, is frozen or dumped.
//
//   scale_bench [--agents 1000] [--jobs 10000] [--queued 10000] [--seconds 60] [--sidingd PATH]
#include <grpcpp/grpcpp.h>
#include <httplib.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/simulated/controller_process.h"
#include "bench/simulated/fleet.h"
#include "siding/v1/api.grpc.pb.h"

namespace {

namespace v1 = siding::v1;
using Controller = siding::ControllerProcess;
using siding::Fleet;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSlots = 10;
constexpr seconds kHeartbeat{5};
constexpr int64_t kGiB = 1LL << 30;

int64_t MicrosFromNow(seconds later) {
  const auto then = std::chrono::system_clock::now() + later;
  return std::chrono::duration_cast<std::chrono::microseconds>(then.time_since_epoch()).count();
}

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Prints what the controller used from construction to End().
class Phase {
 public:
  Phase(const Controller& controller, std::string name)
      : controller_(controller),
        name_(std::move(name)),
        cpu_(controller.CpuSeconds()),
        start_(Clock::now()) {}
  void End() {
    const double wall = Seconds(Clock::now() - start_), cpu = controller_.CpuSeconds() - cpu_;
    std::printf("%-34s %8.1f s %9.2f s %8.1f %%   %8.0f MiB\n", name_.c_str(), wall, cpu, 100 * cpu / wall,
                controller_.PeakMiB());
    std::fflush(stdout);
  }

 private:
  const Controller& controller_;
  const std::string name_;
  const double cpu_;
  const Clock::time_point start_;
};

template <typename Done>
bool Await(const char* what, Done done) {
  for (int i = 0; i < 6000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(milliseconds(50));
  }
  std::fprintf(stderr, "scale_bench: gave up waiting for %s\n", what);
  return false;
}

v1::SubmitRequest JobRequest(int number) {
  v1::SubmitRequest request;
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_name("batch" + std::to_string(number));
  spec.set_nodes(1);
  spec.mutable_per_node()->set_slots(1);
  spec.mutable_per_node()->set_memory(4 * kGiB);
  spec.add_command("/bin/true");
  spec.set_workdir("/");
  spec.set_output("/dev/null");
  if (number % 2 == 0) spec.add_methods(v1::SUSPEND);
  spec.add_methods(v1::CHECKPOINT);
  spec.set_kill_grace_us(10'000'000);
  return request;
}

v1::SubmitRequest DeadlineRequest(int nodes) {
  v1::SubmitRequest request = JobRequest(0);
  v1::JobSpec& spec = *request.mutable_spec();
  spec.set_name("express");
  spec.set_on_demand(true);
  spec.set_nodes(nodes);
  spec.mutable_per_node()->set_slots(kSlots);
  spec.clear_methods();
  spec.set_start_by_us(MicrosFromNow(seconds(120)));
  return request;
}

class Bench {
 public:
  struct Size {
    int agents = 1000, jobs = 10000, queued = 10000, seconds = 60;
  };
  Bench(Size size, const std::string& program)
      : size_(size),
        controller_(program, {"--heartbeat", "5s", "--log-level", "warning", "--metrics-port",
                              std::to_string(metrics_port_)}),
        channel_(Dial(controller_.socket())),
        api_(v1::Siding::NewStub(channel_)) {}

  // False if something did not come about; it has been said.
  bool Run() {
    if (!channel_->WaitForConnected(std::chrono::system_clock::now() + seconds(30))) {
      std::fprintf(stderr, "scale_bench: sidingd does not answer on its socket\n");
      return false;
    }
    std::printf("%d agents, %d jobs that run, %d that wait, a heartbeat every %d s\n", size_.agents,
                size_.jobs, size_.queued, static_cast<int>(kHeartbeat.count()));
    std::printf("%-34s %10s %11s %10s   %12s\n", "phase", "wall", "CPU", "of a core", "peak memory");
    if (!Register() || !StartJobs()) return false;
    Measure("steady, bound: 50 % and 1024 MiB");
    if (!Scrape()) return false;
    Phase queueing(controller_, "more jobs are submitted and wait");
    for (int j = 0; j < size_.queued; ++j) {
      if (!Submit(JobRequest(j))) return false;
    }
    queueing.End();
    Measure("steady, with the queue");
    return List() && Scrape() && PlanDeadline() && ServeDeadline();
  }

 private:
  static std::shared_ptr<grpc::Channel> Dial(const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
  }

  bool Register() {
    Phase phase(controller_, "agents register");
    siding::FleetOptions options;
    options.socket = controller_.socket();
    options.agents = size_.agents;
    options.node.slots = kSlots;
    agents_.emplace(std::move(options));
    const bool welcome = Await("the agents' welcome", [&] { return agents_->Welcomed() == size_.agents; });
    phase.End();
    return welcome;
  }

  bool StartJobs() {
    Phase phase(controller_, "jobs are submitted and start");
    for (int j = 0; j < size_.jobs; ++j) {
      if (!Submit(JobRequest(j))) return false;
    }
    const bool started = Await("all jobs to run", [&] { return agents_->Tasks() >= size_.jobs; });
    phase.End();
    return started;
  }

  void Measure(const char* name) {
    std::this_thread::sleep_for(kHeartbeat);  // what was queued by the last phase is over
    Phase phase(controller_, name);
    std::this_thread::sleep_for(seconds(size_.seconds));
    phase.End();
  }

  // While it answers, the controller decides nothing.
  bool List() {
    Phase phase(controller_, "all jobs and nodes are listed");
    grpc::ClientContext first, second;
    v1::ListJobsResponse jobs;
    v1::ListNodesResponse nodes;
    const bool good = Good(api_->ListJobs(&first, {}, &jobs), "jobs") &&
                      Good(api_->ListNodes(&second, {}, &nodes), "nodes");
    phase.End();
    std::printf("  %zu MiB of jobs, %zu MiB of nodes\n", jobs.ByteSizeLong() >> 20,
                nodes.ByteSizeLong() >> 20);
    return good;
  }

  // Bound: 50 ms. While the state is looked at, the controller decides nothing.
  bool Scrape() {
    Phase phase(controller_, "the metrics are read 20 times");
    std::vector<double> took;
    size_t bytes = 0;
    for (int i = 0; i < 20; ++i) {
      const auto begun = Clock::now();
      const auto answer = httplib::Client("127.0.0.1", metrics_port_).Get("/metrics");
      if (!answer || answer->status != 200) {
        std::fprintf(stderr, "scale_bench: the metrics were not served\n");
        return false;
      }
      took.push_back(1000 * Seconds(Clock::now() - begun));
      bytes = answer->body.size();
    }
    phase.End();
    std::sort(took.begin(), took.end());
    std::printf("  each %.1f ms by the median, %.1f at most, %zu KiB\n", took[took.size() / 2], took.back(),
                bytes >> 10);
    return true;
  }

  int NodesAsked() const { return std::max(1, size_.agents / 16); }

  bool PlanDeadline() {
    Phase phase(controller_, "a plan for 1/16 of the nodes");
    grpc::ClientContext context;
    v1::Plan plan;
    const grpc::Status status = api_->PlanRequest(&context, DeadlineRequest(NodesAsked()), &plan);
    phase.End();
    std::printf("  %d nodes, %s, %d victims\n", NodesAsked(),
                plan.feasible() ? "feasible" : plan.refusal().c_str(), plan.steps_size());
    return Good(status, "plan") && plan.feasible();
  }

  bool ServeDeadline() {
    Phase phase(controller_, "a request for them, until it runs");
    const std::optional<int64_t> id = Submit(DeadlineRequest(NodesAsked()));
    const bool runs = id && Await("the request to run", [&] { return StateOf(*id) == "running"; });
    phase.End();
    return runs;
  }

  std::optional<int64_t> Submit(const v1::SubmitRequest& request) {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    if (!Good(api_->Submit(&context, request, &response), request.spec().name())) return std::nullopt;
    return response.id();
  }

  std::string StateOf(int64_t id) {
    grpc::ClientContext context;
    v1::ListJobsRequest request;
    request.add_ids(id);
    v1::ListJobsResponse response;
    const bool good = Good(api_->ListJobs(&context, request, &response), "jobs");
    return good && response.jobs_size() == 1 ? response.jobs(0).state() : "";
  }

  static bool Good(const grpc::Status& status, const std::string& what) {
    if (!status.ok())
      std::fprintf(stderr, "scale_bench: %s: %s\n", what.c_str(), status.error_message().c_str());
    return status.ok();
  }

  const Size size_;
  const int metrics_port_ = siding::FreePort();
  const Controller controller_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Siding::Stub> api_;
  std::optional<Fleet> agents_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("CPU and memory of sidingd with many simulated agents");
  Bench::Size size;
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sidingd";
  app.add_option("--agents", size.agents)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--jobs", size.jobs, "that run; 10 for each agent at most")->check(CLI::Range(0, 1000000));
  app.add_option("--queued", size.queued, "that wait")->check(CLI::Range(0, 1000000))->capture_default_str();
  app.add_option("--seconds", size.seconds, "how long a steady phase is measured")->capture_default_str();
  app.add_option("--sidingd", program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (size.jobs > size.agents * kSlots) {
    std::fprintf(stderr, "scale_bench: --jobs: %d agents run %d at most\n", size.agents,
                 size.agents * kSlots);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return Bench(size, program).Run() ? 0 : 1;
}
