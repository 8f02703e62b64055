// What do the barriers of a gang's checkpoint cost the controller, and how long do they take? Starts the real
// sidingd and connects a simulated agent to it for each rank, over its real socket. A job of that many ranks
// keeps its connections; in each round it is checkpointed and runs on, and then it leaves its nodes and comes
// back. The agents do at once what they are told, so all of the time is the protocol's: messages, the
// controller's turns, its journal. All of it is on this machine: the time has the agents' part in it, too.
//
//   gang_bench [--ranks 64] [--rounds 10] [--sidingd PATH]
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
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
using std::chrono::seconds;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Cost {
  double wall_ms = 0, cpu_ms = 0;
};

// CPU time is counted in ticks of 10 ms, so it is a mean.
void Print(const char* what, const std::vector<Cost>& costs) {
  std::vector<double> walls;
  double cpu_ms = 0;
  for (const Cost& cost : costs) {
    walls.push_back(cost.wall_ms);
    cpu_ms += cost.cpu_ms;
  }
  std::printf("%-32s %9.1f ms (longest %9.1f)   controller's CPU, mean %8.1f ms\n", what, Median(walls),
              *std::max_element(walls.begin(), walls.end()), cpu_ms / static_cast<double>(costs.size()));
}

class Bench {
 public:
  Bench(int ranks, int rounds, const std::string& program)
      : ranks_(ranks),
        rounds_(rounds),
        controller_(program, {"--heartbeat", "60s", "--log-level", "warning"}),
        channel_(grpc::CreateChannel("unix:" + controller_.socket(), grpc::InsecureChannelCredentials())),
        api_(v1::Siding::NewStub(channel_)) {}

  // An error has been said.
  bool Run() {
    if (!channel_->WaitForConnected(std::chrono::system_clock::now() + seconds(30)))
      return Fail("sidingd does not answer on its socket");
    siding::FleetOptions options;
    options.socket = controller_.socket();
    options.agents = ranks_;
    options.node.task_memory = 1;
    siding::Fleet fleet(std::move(options));
    while (fleet.Welcomed() < ranks_) {
      if (!controller_.IsRunning()) return Fail("sidingd has ended, see " + controller_.log());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    const auto started = Measure([this] { return Submit(); }, "place", "started");
    if (!started) return false;
    std::vector<Cost> checkpoints, leavings, returns;
    for (int round = 0; round < rounds_; ++round) {
      const auto checkpoint = Measure([this] { return Checkpoint(); }, "order-dump", "continued");
      const auto leaving = Measure([this] { return Vacate(); }, "order-dump", "released");
      const auto back = Measure([] { return true; }, "place", "restored");
      if (!checkpoint || !leaving || !back) return false;
      checkpoints.push_back(*checkpoint);
      leavings.push_back(*leaving);
      returns.push_back(*back);
    }
    std::printf("%d ranks, medians of %d\n", ranks_, rounds_);
    Print("started and joined", {*started});
    Print("a checkpoint, three barriers", checkpoints);
    Print("leaves its nodes, two barriers", leavings);
    Print("restored and joined", returns);
    return true;
  }

 private:
  static bool Fail(const std::string& why) {
    std::fprintf(stderr, "gang_bench: %s\n", why.c_str());
    return false;
  }
  static bool Good(const grpc::Status& status, const char* what) {
    return status.ok() || Fail(std::string(what) + ": " + status.error_message());
  }

  // Between two of the job's events that follow from an order, by the controller's clock; none: they did not
  // come.
  std::optional<Cost> Measure(const std::function<bool()>& order, const char* first, const char* last) {
    const double cpu = controller_.CpuSeconds();
    if (!order()) return std::nullopt;
    const auto begun = Await(first), done = Await(last);
    if (!begun || !done) return std::nullopt;
    return Cost{static_cast<double>(*done - *begun) / 1000, 1000 * (controller_.CpuSeconds() - cpu)};
  }

  // When it was, in microseconds.
  std::optional<int64_t> Await(const std::string& kind) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(120));
    v1::EventsRequest request;
    request.set_after_seq(seen_);
    request.set_follow(true);
    request.set_job(job_);
    const auto events = api_->Events(&context, request);
    std::string said, why = "no event '" + kind + "' came";
    v1::Event event;
    while (said != kind && events->Read(&event)) {
      said = event.kind();
      seen_ = std::max(seen_, event.seq());
      if (said == "dump-failed" || said == "restore-failed") why = said + ": " + event.text();
    }
    context.TryCancel();
    events->Finish();
    if (said == kind) return event.at_us();
    Fail(why);
    return std::nullopt;
  }

  bool Submit() {
    v1::SubmitRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_name("gang");
    spec.set_nodes(ranks_);
    spec.mutable_per_node()->set_slots(1);
    spec.mutable_per_node()->set_memory(1);
    spec.add_command("/bin/true");
    spec.set_workdir("/");
    spec.set_output("/dev/null");
    spec.add_methods(v1::CHECKPOINT);
    spec.set_keep_connections(true);
    grpc::ClientContext context;
    v1::SubmitResponse response;
    if (!Good(api_->Submit(&context, request, &response), "submit")) return false;
    job_ = response.id();
    return true;
  }
  bool Checkpoint() {
    grpc::ClientContext context;
    v1::CheckpointResponse response;
    return Good(api_->Checkpoint(&context, Order(), &response), "checkpoint");
  }
  bool Vacate() {
    grpc::ClientContext context;
    v1::Empty response;
    return Good(api_->Vacate(&context, Order(), &response), "vacate");
  }
  v1::CheckpointRequest Order() const {
    v1::CheckpointRequest request;
    request.set_id(job_);
    request.set_tier(v1::SHARED);
    return request;
  }

  const int ranks_, rounds_;
  const siding::ControllerProcess controller_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Siding::Stub> api_;
  int64_t job_ = 0;
  int64_t seen_ = 0;  // events up to this one
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The barriers of a gang's checkpoint, with simulated agents and a real sidingd");
  int ranks = 64, rounds = 10;
  std::string program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sidingd";
  app.add_option("--ranks", ranks)->check(CLI::Range(2, 4096))->capture_default_str();
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--sidingd", program)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return Bench(ranks, rounds, program).Run() ? 0 : 1;
}
