#include "tests/simulation/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace siding::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kLook = 5s;
// With nothing going wrong any more, everything that was asked for is done long before. Most takes a job
// whose images are all refused, each by the only node that can try it: each is given up after more than an
// hour.
constexpr Duration kPatience = 12h;

}  // namespace

World::World(uint64_t seed, bool print) : lab_(seed, print) {
  DrawTrouble();
  DrawPolicy();
  controller_ = std::make_unique<Controller>(lab_, network_, policy_);
  checks_ = std::make_unique<Checks>(lab_, controller_->journal().state(),
                                     [this](const NodeId& node) { return controller_->IsConnected(node); });
  checks_->is_silent = [this](const NodeId& node) { return controller_->IsSilent(node); };
  controller_->journal().on_event = [this](const Event& event) { checks_->OnEvent(event); };
  controller_->on_start_order = [this](const TaskId& task) { checks_->OnStartOrder(task); };
  lab_.on_running = [this] { checks_->OnRunning(); };
  lab_.on_image = [this](const ImageName& name) { checks_->OnImage(name); };
  lab_.on_join = [this](const TaskId& task, const v1::JoinNetwork& network) {
    checks_->OnJoin(task, network);
  };
  lab_.on_delete = [this](const ImageName& name) { checks_->OnDelete(name); };
  MakeNodes();
  DrawBurn(seed);
  DrawJobs(seed);
  DrawMishaps();
  DrawPutBack(seed);
  DrawSilence(seed);
  DrawFaults(seed);
  DrawWrongLoss(seed);
  DrawMemory(seed);
  DrawRefusals(seed);
  DrawFullTier(seed);
  DrawQueueVerbs(seed);
}

void World::MakeNodes() {
  Random& random = lab_.random;
  const double speed = 1e6 * random.Between(100, 2000);
  agent_options_.dump = {speed, random.Between(10ms, 2s), 0};
  agent_options_.restore = {2 * speed, random.Between(10ms, 1s), 0};
  agent_options_.heartbeat = random.Between(1s, 5s);
  controller_->SetSilence(std::max<Duration>(5 * agent_options_.heartbeat, 10s));
  nodes_.resize(random.Chance(0.5) ? 2 : random.Between(3, 6));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const NodeId name(absl::StrCat("n", i + 1));
    nodes_[i].machine = std::make_unique<Machine>(lab_, name, Resources{4, Bytes{8LL << 30}});
    checks_->Watch(*nodes_[i].machine);
  }
}

void World::StartAgent(Node& node) {
  if (node.agent || !node.has_power) return;
  ++node.change;
  AgentOptions options = agent_options_;
  options.name = absl::StrCat("a", ++agents_started_);
  node.agent = std::make_unique<Agent>(lab_, *node.machine, network_, options);
}

void World::StopAgent(Node& node, Duration for_so_long) {
  if (!node.agent) return;
  lab_.trace(node.machine->node().value(), "the agent dies");
  node.agent.reset();
  lab_.timeline.After(for_so_long, [this, &node, change = ++node.change] {
    if (change == node.change) StartAgent(node);
  });
}

Outcome World::Run() {
  const Time begun = lab_.timeline.Now();
  controller_->Start();
  for (Node& node : nodes_) StartAgent(node);
  lab_.timeline.After(lab_.random.Between(150s, 400s), [this] { CalmDown(); });
  while (lab_.trace.violation().empty() && !rests_) lab_.timeline.Step();
  if (rests_) {
    controller_->CompareWithJournal();
    checks_->AtTheEnd();
  }
  return {lab_.trace.violation(), lab_.trace.hash(), lab_.timeline.Now() - begun};
}

void World::CalmDown() {
  lab_.trace("world", "nothing goes wrong any more");
  calm_ = true;
  lab_.odds = Odds();
  lab_.store.full_until = lab_.store.shared_full_until = Time();
  lab_.files_away_until = Time();
  give_up_ = lab_.timeline.Now() + kPatience;
  for (Node& node : nodes_) {
    node.machine->fault.clear();
    if (node.burnt) continue;
    node.has_power = true;
    network_.Reconnect(node.machine->node());
    StartAgent(node);
    if (node.agent) node.agent->GoOn();
  }
  LookForRest();
}

void World::LookForRest() {
  ResumeFrozen();
  const std::string unrest = to_submit_ > 0 ? "jobs are still to come" : checks_->Unrest();
  if (unrest.empty()) {
    rests_ = true;
  } else if (lab_.timeline.Now() > give_up_) {
    lab_.trace.Violate("it does not come to rest: " + unrest);
  } else {
    lab_.timeline.After(kLook, [this] { LookForRest(); });
  }
}

// Some rank's image is missing, and only an operator can know it: it was deleted after the copy of the
// journal was made that is in use, or its node burnt, and another one of that name has an empty disk. What
// lies on the disk of a node that is recorded lost, or was in a node's memory, is left to the controller,
// which has to know it without help.
bool World::LacksImage(const CheckpointRecord& checkpoint) const {
  if (LiesOnALostDisk(controller_->journal().state(), checkpoint)) return false;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    const ImageName image = ImageOf(checkpoint, rank);
    if (!checkpoint.exited.contains(rank) && !lab_.store.images.contains(image) &&
        !checks_->WasLostWithMemory(image))
      return true;
  }
  return false;
}

// What is held is released, what a user has frozen goes on when the user says so, and what has nothing to go
// on from starts again; and operators see to nodes.
void World::ResumeFrozen() {
  const ClusterState& recorded = controller_->journal().state();
  std::vector<JobId> frozen, stuck, held;
  std::vector<CheckpointId> missing;
  for (const auto& [id, job] : recorded.unfinished) {
    if (job->held) held.push_back(id);
    if (job->state == JobState::kSuspended && job->displaced_by == JobId()) frozen.push_back(id);
    if (job->state != JobState::kParked) continue;
    const bool lacks_image = ResumptionOf(recorded, *job) == Resumption::kCheckpoint &&
                             LacksImage(recorded.checkpoints.at(job->checkpoints.back()));
    if (lacks_image && UsableImages(recorded, *job).size() > 1)
      missing.push_back(job->checkpoints.back());
    else if (lacks_image || ResumptionOf(recorded, *job) == Resumption::kBeginning)
      stuck.push_back(id);
  }
  controller_->Call([&](Engine& engine) {
    for (JobId id : held) engine.Release(kOperator, id).IgnoreError();
    for (JobId id : frozen) engine.Resume(kOperator, id).IgnoreError();
    for (const CheckpointId& id : missing) engine.DeleteCheckpoint(kOperator, id).IgnoreError();
    for (JobId id : stuck) {
      checks_->OnUserRestart(id);
      engine.Restart(kOperator, id).IgnoreError();
    }
    for (const Node& node : nodes_) {
      engine.Cordon(kOperator, node.machine->node(), false).IgnoreError();
      if (node.burnt) engine.Lose(kOperator, node.machine->node()).IgnoreError();
    }
  });
}

Outcome RunWorld(uint64_t seed, bool print) { return World(seed, print).Run(); }

}  // namespace siding::simulation
