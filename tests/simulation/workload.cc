// Who asks for what: jobs, and what users and operators do with them.
#include "absl/strings/str_cat.h"
#include "tests/simulation/world.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {

const Caller kUser{1000, "ada", false};

MethodSet DrawMethods(Random& random) {
  MethodSet methods;
  if (random.Chance(0.2)) return {Method::kApp};
  if (random.Chance(0.6)) methods.Add(Method::kSuspend);
  if (random.Chance(0.8)) methods.Add(Method::kCheckpoint);
  if (random.Chance(0.25)) methods.Add(Method::kApp);
  if (random.Chance(0.5)) methods.Add(Method::kKill);
  return methods;
}

// How long they may run, and what follows the loss of all that they have done. From a source of its own.
void DrawLimits(Random& random, JobSpec& spec) {
  if (random.Chance(0.3)) spec.walltime = random.Between(10s, 150s);
  if (random.Chance(0.3))
    spec.on_node_failure = random.Chance(0.5) ? OnNodeFailure::kRequeue : OnNodeFailure::kPark;
  // Without a walltime it is only a forecast, as before walltimes were limits.
  if (spec.kind == JobKind::kOnDemand && spec.walltime > 0s) spec.hold = spec.walltime;
}

}  // namespace

void World::DrawTrouble() {
  Random& random = lab_.random;
  if (random.Chance(0.15)) return;  // nothing at all: promises are kept
  trouble_.verbs = random.Chance(0.6);
  trouble_.deaths = random.Chance(0.6);
  trouble_.network = random.Chance(0.5);
  trouble_.beyond = random.Chance(0.2);
  trouble_.operations = random.Chance(0.5);
  trouble_.storage = random.Chance(0.3);
  DrawOdds();
}

void World::DrawPolicy() {
  Random& random = lab_.random;
  Policy& policy = policy_;
  policy.margin = 2s;
  policy.budget_steps = 512;
  policy.keep_checkpoints = random.Between(1, 3);
  policy.keep_failed_images = random.Between(0s, 600s);
  policy.expected_hold = random.Between(20s, 300s);
  policy.headroom_nodes = random.Chance(0.1) ? 1 : 0;
  policy.delay_weight = random.Chance(0.3) ? 0.2 : 0;
  if (random.Chance(0.3)) {
    policy.most_lost_work = random.Between(5s, 60s);
    policy.checkpoint_bandwidth = random.OneOf(std::vector{0.1, 0.3, 0.5});
    policy.checkpoint_stops = random.OneOf(std::vector{0.05, 0.5});
    policy.checkpoint_tier = random.Chance(0.5) ? Tier::kLocal : Tier::kShared;
  }
  policy.copy_images = random.Chance(0.8);
  policy.when_late = random.OneOf(std::vector{WhenLate::kRefuse, WhenLate::kBestEffort, WhenLate::kQueue});
}

JobSpec World::DrawSpec() {
  Random& random = lab_.random;
  Program program;
  program.work = random.Between(10s, 120s);
  program.memory = Bytes{random.Between(16, 1500) * (1LL << 20)};
  program.heeds_sigterm = random.Chance(0.7);
  if (random.Chance(0.03)) program.fails_at_rank = 0;

  JobSpec spec;
  const int most = NodesForJobs() - (trouble_.burn ? 1 : 0);  // without the node that burns
  spec.nodes = random.Chance(0.5) ? 1 : random.Between(1, most);
  spec.per_node = {random.OneOf(std::vector{4, 4, 4, 2, 1}), program.memory};
  spec.priority = random.Between(0, 2);
  spec.methods = DrawMethods(random);
  spec.kill_grace = random.Between(0s, 10s);
  if (random.Chance(0.3)) spec.notice = random.Between(100ms, 5s);
  if (spec.methods.Has(Method::kApp)) {
    spec.app.emplace();
    spec.app->grace = 10s;
    program.save_takes = random.Between(100ms, trouble_.operations ? 12s : 8s);
    program.exits_after_save = random.Chance(0.4);
    if (!program.exits_after_save) spec.app->marker = "saved";
  }
  if (random.Chance(0.3)) spec.checkpoint_interval = random.Between(5s, 40s);
  // As its name as well, which is kept when its job is over.
  spec.name = absl::StrCat(lab_.programs.size());
  spec.command = {"work", spec.name};
  lab_.programs.push_back(program);
  return spec;
}

void World::DrawJobs(uint64_t seed) {
  Random& random = lab_.random;
  Random limits = SourceOf(seed, Source::kLimits);
  const int batch = random.Between(2, 10), on_demand = random.Between(0, 6);
  to_submit_ = batch + on_demand;
  for (int i = 0; i < batch; ++i) {
    JobSpec spec = DrawSpec();
    DrawLimits(limits, spec);
    spec.keep_connections = spec.nodes > 1 && limits.Chance(0.5);
    lab_.timeline.After(random.Between(0s, 90s), [this, spec] { Submit(spec, 0s); });
  }
  for (int i = 0; i < on_demand; ++i) {
    JobSpec spec = DrawSpec();
    spec.kind = JobKind::kOnDemand;
    spec.methods = {};
    spec.app.reset();
    spec.checkpoint_interval = 0s;
    if (random.Chance(0.5)) spec.hold = lab_.programs.back().work;
    DrawLimits(limits, spec);
    lab_.timeline.After(random.Between(5s, 200s),
                        [this, spec, within = random.Between(2s, 90s)] { Submit(spec, within); });
  }
  if (trouble_.verbs) lab_.timeline.After(random.Between(5s, 30s), [this] { AskSomething(); });
}

// A client tries until it is answered; whoever got no answer does not know that his job was taken.
void World::Submit(const JobSpec& spec, Duration start_within) {
  absl::StatusOr<Engine::Submitted> submitted = absl::UnavailableError("no controller");
  JobSpec asked = spec;
  if (start_within > 0s) {
    asked.start_by = lab_.timeline.Now() + start_within;
    if (lab_.random.Chance(0.2)) asked.not_before = lab_.timeline.Now() + start_within / 2;
  }
  controller_->Call([&](Engine& engine) { submitted = engine.Submit(kUser, asked); });
  if (absl::IsUnavailable(submitted.status())) {
    lab_.timeline.After(lab_.random.Between(1s, 5s),
                        [this, spec, start_within] { Submit(spec, start_within); });
    return;
  }
  --to_submit_;
  if (!submitted.ok()) return;
  jobs_.push_back(submitted->id);
  const std::optional<Plan>& plan = submitted->plan;
  if (plan && plan->feasible && plan->refusal.empty() && !trouble_.any()) checks_->OnPromise(submitted->id);
}

void World::AskSomething() {
  Random& random = lab_.random;
  if (calm_) return;
  lab_.timeline.After(random.Between(1s, 20s), [this] { AskSomething(); });
  if (jobs_.empty()) return;
  const JobId job = random.OneOf(jobs_);
  const Tier tier = random.Chance(0.5) ? Tier::kLocal : Tier::kShared;
  NodeId node = AnyNode().machine->node();
  const int what = random.Below(23);
  const bool cordon = random.Chance(0.3);
  if (what == 19 || what == 20) {
    for (const Node& other : nodes_) {
      if (!controller_->IsConnected(other.machine->node())) node = other.machine->node();
    }
  }
  controller_->Call([&](Engine& engine) {
    absl::Status status;
    switch (what) {
      case 0:
        lab_.trace("user", "kill ", job.value());
        checks_->OnUserKill(job);
        status = engine.Kill(kUser, job);
        break;
      case 1:
      case 2:
      case 3:
        lab_.trace("user", "suspend ", job.value());
        status = engine.Suspend(kUser, job);
        break;
      case 4:
      case 5:
      case 6:
        lab_.trace("user", "resume ", job.value());
        status = engine.Resume(kUser, job);
        break;
      case 7:
      case 8:
      case 9:
      case 10:
        lab_.trace("user", "checkpoint ", job.value());
        status = engine.Checkpoint(kUser, job, tier).status();
        break;
      case 11:
      case 12:
      case 13:
        lab_.trace("user", "vacate ", job.value());
        status = engine.Vacate(kUser, job, tier);
        break;
      case 14:
      case 15:
      case 16:
        lab_.trace("user", "migrate ", job.value());
        status = engine.Migrate(kUser, job, cordon ? std::vector{node} : std::vector<NodeId>());
        break;
      case 17: {
        lab_.trace("user", "delete a checkpoint of ", job.value());
        const CheckpointId id(absl::StrCat(job.value(), ".1"));
        status = engine.DeleteCheckpoint(kUser, id);
        break;
      }
      case 18: {
        lab_.trace("user", "verify a checkpoint of ", job.value());
        const CheckpointId id(absl::StrCat(job.value(), ".1"));
        status = engine.VerifyCheckpoint(kUser, id, [](const std::map<int, v1::OpResult>&) {});
        break;
      }
      case 19:
      case 20:
        // Of a node that is off this is true; of one that is cut off, or whose agent is dead, it is not.
        lab_.trace("operator", "lost ", node.value());
        status = engine.Lose(kOperator, node);
        break;
      case 21:
        lab_.trace("user", "restart ", job.value());
        checks_->OnUserRestart(job);
        status = engine.Restart(kUser, job);
        break;
      default:
        lab_.trace("operator", cordon ? "cordon " : "uncordon ", node.value());
        status = engine.Cordon(kOperator, node, cordon);
    }
    if (!status.ok()) lab_.trace("user", "is refused: ", std::string(status.message()));
  });
}

// Jobs are held, released, changed and started over. All of it is drawn from a source of its own.
void World::DrawQueueVerbs(uint64_t seed) {
  queue_random_ = Random(~seed * 29);
  if (!trouble_.verbs || queue_random_.Chance(0.5)) return;
  lab_.timeline.After(queue_random_.Between(5s, 40s), [this] { AskOfTheQueue(); });
}

void World::AskOfTheQueue() {
  Random& random = queue_random_;
  if (calm_) return;
  lab_.timeline.After(random.Between(1s, 20s), [this] { AskOfTheQueue(); });
  if (jobs_.empty()) return;
  const JobId job = random.OneOf(jobs_);
  const int what = random.Below(10);
  const Caller& caller = random.Chance(0.3) ? kOperator : kUser;
  const int priority = random.Between(-1, 3);
  const Duration walltime = random.Chance(0.2) ? 0s : random.Between(10s, 300s);
  controller_->Call([&](Engine& engine) {
    absl::Status status;
    switch (what) {
      case 0:
      case 1:
      case 2:
      case 3:
        lab_.trace(caller.user, "hold ", job.value());
        status = engine.Hold(caller, job);
        break;
      case 4:
      case 5:
        lab_.trace(caller.user, "release ", job.value());
        status = engine.Release(caller, job);
        break;
      case 6:
        lab_.trace(caller.user, "priority ", priority, " of ", job.value());
        status = engine.Update(caller, job, {.priority = priority, .walltime = {}});
        break;
      case 7:
        lab_.trace(caller.user, "walltime ", FormatDuration(walltime), " of ", job.value());
        status = engine.Update(caller, job, {.priority = {}, .walltime = walltime});
        break;
      default:
        lab_.trace(caller.user, "restart ", job.value(), ", though it may run");
        checks_->OnUserRestart(job);
        status = engine.Restart(caller, job, /*running=*/true);
    }
    if (!status.ok()) lab_.trace(caller.user, "is refused: ", std::string(status.message()));
  });
}

}  // namespace siding::simulation
