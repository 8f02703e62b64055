// What does the controller need for a cluster of a thousand nodes? Starts the real sidingd and connects N
// simulated agents to it over its real socket, each with a connection of its own; they register, take 10
// jobs each, and send heartbeats with the state of all their tasks every 5 s. Prints the controller's CPU
// time and memory for each phase, beside the bound. Simulated is what an agent does with a command: a
// launched task is reported as running at once, and nothing runs.
//
//   scale_bench [--agents 1000] [--jobs 10000] [--seconds 60] [--sidingd PATH]
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "siding/v1/agent.grpc.pb.h"
#include "siding/v1/api.grpc.pb.h"

namespace {

namespace v1 = siding::v1;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSlots = 10;
constexpr seconds kHeartbeat{5};
constexpr int64_t kGiB = 1LL << 30;

double Seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// The real controller, on a folder of its own.
class Controller {
 public:
  explicit Controller(const std::string& program) {
    char name[] = "/tmp/siding-scale-XXXXXX";
    folder_ = mkdtemp(name);
    pid_ = fork();
    if (pid_ == 0) {
      const std::string log = folder_ + "/log";
      if (freopen(log.c_str(), "w", stderr) == nullptr || freopen(log.c_str(), "w", stdout) == nullptr)
        _exit(126);
      execl(program.c_str(), "sidingd", "--socket", socket().c_str(), "--state-dir",
            (folder_ + "/state").c_str(), "--heartbeat", "5s", "--log-level", "warning", nullptr);
      _exit(127);
    }
  }
  ~Controller() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }
  std::string socket() const { return folder_ + "/socket"; }

  double CpuSeconds() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    double user = 0, system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  double PeakMiB() const {
    std::ifstream in("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
    }
    return 0;
  }

 private:
  std::string folder_;
  pid_t pid_ = 0;
};

// One simulated agent: a connection, a stream, and the tasks that it was told to launch.
class Agent final : public grpc::ClientBidiReactor<v1::FromAgent, v1::ToAgent> {
 public:
  Agent(int number, const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("siding.bench.agent", number);  // or gRPC would share one connection among all
    stub_ = v1::AgentGateway::NewStub(
        grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
    stub_->async()->Connect(&context_, this);
    v1::FromAgent hello;
    hello.mutable_hello()->set_node("node" + std::to_string(number));
    hello.mutable_hello()->set_boot_id("1");
    hello.mutable_hello()->mutable_capacity()->set_slots(kSlots);
    hello.mutable_hello()->mutable_capacity()->set_memory(256 * kGiB);
    hello.mutable_hello()->set_criu("simulated");
    StartCall();
    Send(std::move(hello));
    StartRead(&incoming_);
  }

  void Beat() {
    v1::FromAgent message;
    v1::Heartbeat& beat = *message.mutable_heartbeat();
    beat.set_ram_available(128 * kGiB);
    beat.set_local_disk_free(1024 * kGiB);
    beat.set_shared_disk_free(1024 * kGiB);
    for (v1::TierRates* rates : {beat.mutable_local(), beat.mutable_shared()}) {
      for (v1::Rate* rate : {rates->mutable_dump(), rates->mutable_restore()}) {
        rate->set_bytes_per_second(1e9);
        rate->set_overhead_us(100000);
        rate->set_spread(0.1);
      }
    }
    {
      std::lock_guard lock(mutex_);
      for (const auto& [key, task] : tasks_) *beat.add_tasks() = task;
    }
    Send(std::move(message));
  }

  int tasks() {
    std::lock_guard lock(mutex_);
    return static_cast<int>(tasks_.size());
  }
  bool welcomed() const { return welcomed_; }
  void Cancel() { context_.TryCancel(); }
  void AwaitDone() {
    std::unique_lock lock(mutex_);
    over_.wait(lock, [&] { return done_; });
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    if (incoming_.has_welcome()) welcomed_ = true;
    if (incoming_.has_launch()) {
      v1::FromAgent message;
      v1::TaskReport& report = *message.mutable_report();
      *report.mutable_task() = incoming_.task();
      report.set_phase(v1::RUNNING);
      report.set_memory(4 * kGiB);
      report.set_started_us(std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::system_clock::now().time_since_epoch())
                                .count());
      {
        std::lock_guard lock(mutex_);
        tasks_[incoming_.task().SerializeAsString()] = report;
      }
      Send(std::move(message));
    }
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    outgoing_.pop_front();
    if (ok && !outgoing_.empty()) StartWrite(&outgoing_.front());
  }
  void OnDone(const grpc::Status&) override {
    std::lock_guard lock(mutex_);
    done_ = true;
    over_.notify_all();
  }

 private:
  void Send(v1::FromAgent message) {
    std::lock_guard lock(mutex_);
    outgoing_.push_back(std::move(message));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  grpc::ClientContext context_;
  v1::ToAgent incoming_;
  std::atomic<bool> welcomed_{false};
  std::mutex mutex_;
  std::condition_variable over_;
  std::deque<v1::FromAgent> outgoing_;           // guarded by mutex_
  std::map<std::string, v1::TaskReport> tasks_;  // guarded by mutex_
  bool done_ = false;                            // guarded by mutex_
};

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
  spec.add_methods(v1::SUSPEND);
  spec.add_methods(v1::CHECKPOINT);
  spec.set_kill_grace_us(10'000'000);
  return request;
}

int Run(int agents, int jobs, int measured, const std::string& program) {
  Controller controller(program);
  const auto channel = grpc::CreateChannel("unix:" + controller.socket(), grpc::InsecureChannelCredentials());
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + seconds(30))) {
    std::fprintf(stderr, "scale_bench: %s does not answer on its socket\n", program.c_str());
    return 1;
  }
  const auto api = v1::Siding::NewStub(channel);
  std::printf("%d agents, %d jobs, a heartbeat every %d s\n", agents, jobs,
              static_cast<int>(kHeartbeat.count()));
  std::printf("%-34s %10s %11s %10s   %12s\n", "phase", "wall", "CPU", "of a core", "peak memory");

  std::vector<std::unique_ptr<Agent>> all;
  std::atomic<bool> stop{false};
  Phase registering(controller, "agents register");
  for (int i = 0; i < agents; ++i) all.push_back(std::make_unique<Agent>(i, controller.socket()));
  const bool welcome = Await("the agents' welcome", [&] {
    return std::all_of(all.begin(), all.end(), [](const auto& agent) { return agent->welcomed(); });
  });
  registering.End();
  // Spread evenly over the interval, as agents that started at different times are.
  std::thread beats([&] {
    auto next = Clock::now();
    for (size_t i = 0; !stop; i = (i + 1) % all.size()) {
      all[i]->Beat();
      next += std::chrono::nanoseconds(kHeartbeat) / static_cast<int>(all.size());
      std::this_thread::sleep_until(next);
    }
  });

  bool good = welcome;
  Phase submitting(controller, "jobs are submitted and start");
  for (int j = 0; good && j < jobs; ++j) {
    grpc::ClientContext context;
    v1::SubmitResponse response;
    const grpc::Status status = api->Submit(&context, JobRequest(j), &response);
    if (status.ok()) continue;
    std::fprintf(stderr, "scale_bench: job %d: %s\n", j, status.error_message().c_str());
    good = false;
  }
  good = good && Await("all jobs to run", [&] {
           int running = 0;
           for (const auto& agent : all) running += agent->tasks();
           return running >= std::min(jobs, agents * kSlots);
         });
  submitting.End();

  if (good) {
    std::this_thread::sleep_for(kHeartbeat);  // what was queued by the last phase is over
    Phase steady(controller, "steady, bound: 50 % and 1024 MiB");
    std::this_thread::sleep_for(seconds(measured));
    steady.End();

    v1::SubmitRequest request = JobRequest(jobs);
    request.mutable_spec()->set_on_demand(true);
    request.mutable_spec()->set_nodes(std::max(1, agents / 16));
    request.mutable_spec()->mutable_per_node()->set_slots(kSlots);
    request.mutable_spec()->clear_methods();
    request.mutable_spec()->set_start_by_us(
        std::chrono::duration_cast<std::chrono::microseconds>(
            (std::chrono::system_clock::now() + seconds(120)).time_since_epoch())
            .count());
    Phase planning(controller, "a plan for 1/16 of the nodes");
    grpc::ClientContext context;
    v1::Plan plan;
    const grpc::Status status = api->PlanRequest(&context, request, &plan);
    planning.End();
    if (!status.ok()) std::fprintf(stderr, "scale_bench: plan: %s\n", status.error_message().c_str());
    std::printf("  %s, %d victims\n", plan.feasible() ? "feasible" : plan.refusal().c_str(),
                plan.steps_size());
  }
  stop = true;
  beats.join();
  for (auto& agent : all) agent->Cancel();
  for (auto& agent : all) agent->AwaitDone();
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("CPU and memory of sidingd with many simulated agents");
  int agents = 1000, jobs = 10000, measured = 60;
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sidingd";
  app.add_option("--agents", agents)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--jobs", jobs)->check(CLI::Range(0, 1000000))->capture_default_str();
  app.add_option("--seconds", measured, "how long the steady phase is measured")->capture_default_str();
  app.add_option("--sidingd", program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return Run(agents, jobs, measured, program);
}
