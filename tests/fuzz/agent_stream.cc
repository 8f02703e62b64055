// What agents send, and what users ask, in any order: a controller with three nodes whose agents do as they
// are told, but for the messages that the input puts between. Whatever is sent, the controller continues, and
// can be restarted.
#include <algorithm>
#include <set>

#include "controller/api/views.h"
#include "controller/engine/fake_cluster.h"
#include "controller/wire/wire.h"
#include "spdlog/spdlog.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/input.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

constexpr int kMostSteps = 60;
constexpr const char* kNodes[] = {"n1", "n2", "n3"};
const Caller kRoot{0, "root", true};

class World {
 public:
  explicit World(FuzzedDataProvider& input) : input_(input) {
    Start();
    for (const char* name : kNodes) cluster_.AddNode(name, 4, 1);
  }

  void Start() {
    engine_.reset();
    engine_ = std::make_unique<Engine>(policy_, *journal_, *platform_, cluster_, clock_);
    fuzz::Expect(engine_->Start().ok(), "a controller starts with what it has recorded");
    cluster_.Attach(*engine_);
  }

  void Step() {
    switch (input_.ConsumeIntegralInRange(0, 13)) {
      case 0:
        return SubmitUsual(Method::kSuspend);
      case 1:
        return SubmitUsual(Method::kCheckpoint);
      case 2:
        return SubmitAny();
      case 3:
        return Ask();
      case 4:
        return Say();
      case 5:
        return SayOfATask();
      case 6:
        return Greet();
      case 7:
        return cluster_.Disconnect(Node());
      case 8:
        return cluster_.Connect(Node());
      case 9:
        return cluster_.Heartbeat(Node());
      case 10:
        return cluster_.Exit(Job(), 0, input_.ConsumeIntegralInRange(0, 1));
      case 11:
        Toggle(cluster_.fail_dump);
        return Toggle(cluster_.slow_dump);
      case 12:
        return Pass(10min);
      default:
        return Settle();
    }
  }

  // As the API shows it.
  void Show() {
    engine_->Read([](const ClusterState& state) {
      ShowNodes(state);
      for (const auto& [id, job] : state.jobs) {
        ShowJob(state, job);
        for (const Plan& plan : job.plans)
          ShowPlan(plan,
                   ContextOf(state, plan, [](const JobRecord& seen) { return seen.id.value() % 2 == 0; }),
                   false);
      }
    });
    for (const auto& [id, back] : *engine_->Returns()) ShowBack(back, true);
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0))) ShowEvent(event);
  }

 private:
  std::string Node() { return input_.PickValueInArray(kNodes); }
  JobId Job() { return JobId(input_.ConsumeIntegralInRange(0, 4)); }

  void Pass(Duration time) {
    clock_.Advance(time);
    engine_->Tick();
  }
  // Not until nothing is left to do: with agents that say anything, that may never be.
  void Settle() {
    for (int i = 0; i < 20 && cluster_.Step(); ++i) {
    }
    Pass(1s);
  }

  void SubmitUsual(Method method) {
    JobSpec spec;
    spec.nodes = input_.ConsumeIntegralInRange(1, 2);
    spec.per_node.slots = 4;
    spec.command = {"work"};
    spec.methods = {method, Method::kKill};
    if (input_.ConsumeBool()) {
      spec.kind = JobKind::kOnDemand;
      spec.start_by = clock_.Now() + 60s;
    }
    engine_->Submit(kRoot, std::move(spec)).status().IgnoreError();
  }
  void SubmitAny() {
    v1::JobSpec message;
    fuzz::Draw(input_, message);
    if (message.command_size() == 0) message.add_command("work");
    message.set_workdir("/");
    message.set_output("/out");
    const auto spec = FromProto(message);
    if (!spec.ok()) return;
    engine_->DryRun(kRoot, *spec).status().IgnoreError();
    engine_->Submit(kRoot, *spec).status().IgnoreError();
  }

  void Ask() {
    const JobId job = Job();
    const CheckpointId checkpoint(fuzz::DrawText(input_));
    switch (input_.ConsumeIntegralInRange(0, 9)) {
      case 0:
        return engine_->Suspend(kRoot, job).IgnoreError();
      case 1:
        return engine_->Resume(kRoot, job).IgnoreError();
      case 2:
        return engine_->Checkpoint(kRoot, job, Tier::kLocal).status().IgnoreError();
      case 3:
        return engine_->Vacate(kRoot, job, Tier::kShared).IgnoreError();
      case 4:
        return engine_->Migrate(kRoot, job, {}).IgnoreError();
      case 5:
        return engine_->Kill(kRoot, job).IgnoreError();
      case 6:
        return engine_->Cordon(kRoot, NodeId(Node()), input_.ConsumeBool()).IgnoreError();
      case 7:
        return engine_->VerifyCheckpoint(kRoot, checkpoint, [](const auto&) {}).IgnoreError();
      case 8:
        return engine_->Lose(kRoot, NodeId(Node())).IgnoreError();
      default:
        return engine_->DeleteCheckpoint(kRoot, checkpoint).IgnoreError();
    }
  }

  void Say() {
    v1::FromAgent message;
    fuzz::Draw(input_, message);
    engine_->OnMessage(NodeId(Node()), message);
  }
  // Something about a task that there may well be.
  void SayOfATask() {
    v1::FromAgent message;
    v1::TaskReport& report = *message.mutable_report();
    fuzz::Draw(input_, report);
    report.mutable_task()->set_job(Job().value());
    report.mutable_task()->set_incarnation(input_.ConsumeIntegralInRange(0, 2));
    report.mutable_task()->set_rank(input_.ConsumeIntegralInRange(0, 1));
    engine_->OnMessage(NodeId(Node()), message);
  }
  void Greet() {
    v1::Hello hello;
    fuzz::Draw(input_, hello);
    const NodeId node(input_.ConsumeBool() ? Node() : "n4");
    engine_->OnConnected(node, hello).IgnoreError();
  }
  void Toggle(std::set<std::string>& nodes) {
    const std::string node = Node();
    if (nodes.erase(node) == 0) nodes.insert(node);
  }

  FuzzedDataProvider& input_;
  FakeClock clock_{FromMicros(1'700'000'000'000'000)};
  Policy policy_;
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  std::unique_ptr<Engine> engine_;
};

}  // namespace
}  // namespace siding

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  spdlog::set_level(spdlog::level::off);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider input(data, size);
  siding::World world(input);
  for (int i = 0; i < siding::kMostSteps && input.remaining_bytes() > 0; ++i) world.Step();
  world.Show();
  world.Start();
  return 0;
}
