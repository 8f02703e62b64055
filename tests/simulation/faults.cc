// What goes wrong, and how often.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/world.h"

namespace siding::simulation {

using namespace std::chrono_literals;

void World::DrawOdds() {
  Random& random = lab_.random;
  Odds& odds = lab_.odds;
  const auto some = [&](double most) { return random.Chance(0.5) ? most * random.Below(1000) / 1000 : 0; };
  if (trouble_.operations) {
    odds.launch_fails = some(0.02);
    odds.restore_fails = some(0.4);
    odds.freeze_fails = some(0.5);
    odds.thaw_fails = some(0.5);
    odds.dump_fails = some(0.5);
    odds.dump_slow = some(0.4);
    odds.save_fails = some(0.5);
    odds.clock_off = some(1);
  }
  if (trouble_.storage) {
    odds.image_rots = some(0.3);
    odds.append_fails = some(0.03);
    odds.append_unheard = some(0.03);
  }
  if (trouble_.deaths) {
    odds.crash_after_append = some(0.05);
    odds.crash_amid_sends = some(0.05);
  }
  if (trouble_.network) odds.connection_breaks = some(0.01);
  if (trouble_.beyond) {
    odds.message_lost = some(0.1);
    odds.message_doubled = some(0.1);
    odds.message_late = some(0.1);
  }
}

void World::DrawMishaps() {
  if (!trouble_.deaths && !trouble_.network && !trouble_.storage) return;
  lab_.timeline.After(lab_.random.Between(1s, 40s), [this] { Mishap(); });
}

// From a source of its own: worlds without it are as if it did not exist.
void World::DrawPutBack(uint64_t seed) {
  Random random = SourceOf(seed, Source::kPutBack);
  trouble_.put_back = random.Chance(0.1);
  if (!trouble_.put_back) return;
  const Duration backup = random.Between(5s, 150s), put_back = backup + random.Between(1s, 200s);
  lab_.timeline.After(backup, [this] { controller_->journal().Backup(); });
  lab_.timeline.After(put_back, [this, away = random.Between(1s, 120s)] {
    controller_->StopFor(away, [this] { checks_->PutBack([this] { controller_->journal().PutBack(); }); });
  });
}

// From a source of its own, too, but for the size of jobs: they must come to their end without the node.
void World::DrawBurn(uint64_t seed) {
  Random random = SourceOf(seed, Source::kBurn);
  if (!trouble_.verbs || !trouble_.deaths || NodesForJobs() < 2) return;
  trouble_.burn = random.Chance(0.5);
  if (!trouble_.burn) return;
  std::optional<Duration> away;
  if (random.Chance(0.5)) away = random.Between(30s, 600s);
  lab_.timeline.After(random.Between(20s, 150s), [this, random, away]() mutable { BurnOne(random, away); });
}

// Rather one with images on its disk. It never comes back, and an operator has to say so (ResumeFrozen, if
// nobody does before), or another one of its name does, with an empty disk.
void World::BurnOne(Random& random, std::optional<Duration> away) {
  std::set<std::string> with_images;
  for (const auto& [image, content] : lab_.store.images) with_images.insert(image.disk);
  std::vector<Node*> among;
  for (Node& node : nodes_) {
    if (with_images.contains(node.machine->node().value())) among.push_back(&node);
  }
  Node& node = among.empty() ? nodes_[random.Below(static_cast<int>(nodes_.size()))] : *random.OneOf(among);
  const NodeId& name = node.machine->node();
  lab_.trace(name.value(), "burns");
  node.burnt = true;
  node.has_power = false;
  ++node.change;
  node.agent.reset();
  node.machine->CutPower();
  node.machine->folders.clear();
  checks_->OnBurnt(name);
  std::erase_if(lab_.store.images, [&](const auto& image) { return image.first.disk == name.value(); });
  // In the shared tier by hand: docs/design/store-format.md.
  std::erase_if(lab_.store.drafts, [&](const auto& draft) { return draft.second == name; });
  if (!away) return;
  lab_.timeline.After(*away, [this, &node] {
    lab_.trace(node.machine->node().value(), "is there again, with an empty disk");
    node.burnt = false;
    node.has_power = true;
    network_.Reconnect(node.machine->node());
    StartAgent(node);
  });
}

// From a source of its own, too. Local tiers are in the memory of their nodes.
void World::DrawMemory(uint64_t seed) {
  Random random = SourceOf(seed, Source::kMemory);
  if (!trouble_.deaths) return;
  trouble_.in_memory = random.Chance(0.3);
  for (Node& node : nodes_) node.machine->local_in_memory = trouble_.in_memory;
}

// The controller has to find out by itself.
void World::LoseMemory(const NodeId& name) {
  checks_->OnMemoryLost(name);
  std::erase_if(lab_.store.images, [&](const auto& image) { return image.first.disk == name.value(); });
}

// From a source of its own, too, and needs the other nodes as a burnt one does.
void World::DrawWrongLoss(uint64_t seed) {
  Random random = SourceOf(seed, Source::kWrongLoss);
  if (!trouble_.verbs || !trouble_.network || NodesForJobs() < 2) return;
  trouble_.wrong_loss = random.Chance(0.5);
  if (!trouble_.wrong_loss) return;
  lab_.timeline.After(random.Between(20s, 120s), [this, random]() mutable { LoseWrongly(random); });
}

// An operator takes a node for lost that is only cut off, so that its jobs start again elsewhere. When it is
// back, it is away again before it can end what it has of them, and they leave their new nodes at that
// moment.
void World::LoseWrongly(Random& random) {
  std::vector<Node*> busy;
  for (Node& node : nodes_) {
    if (!node.burnt && !node.machine->processes().empty()) busy.push_back(&node);
  }
  if (calm_ || busy.empty()) return;
  const NodeId name = random.OneOf(busy)->machine->node();
  lab_.trace("network", name.value(), " is cut off, and will be taken for lost");
  network_.CutOff(name);
  lab_.timeline.After(random.Between(1s, 5s), [this, name] {
    lab_.trace("operator", "lost ", name.value(), ", wrongly");
    controller_->Call([&](Engine& engine) { engine.Lose(kOperator, name).IgnoreError(); });
  });
  lab_.timeline.After(random.Between(10s, 60s), [this, name, so_long = random.Between(20s, 120s)] {
    network_.Reconnect(name);
    CutOffOnceHeard(name, so_long);
  });
}

void World::CutOffOnceHeard(const NodeId& name, Duration for_so_long) {
  if (calm_) return;
  if (!controller_->IsConnected(name)) {
    lab_.timeline.After(10ms, [this, name, for_so_long] { CutOffOnceHeard(name, for_so_long); });
    return;
  }
  lab_.trace("network", name.value(), " is cut off again");
  network_.CutOff(name);
  lab_.timeline.After(for_so_long, [this, name] { network_.Reconnect(name); });
  controller_->Call([&](Engine& engine) {
    for (JobId job : jobs_) engine.Vacate(kOperator, job, Tier::kShared).IgnoreError();
  });
}

// From a source of its own, too. Never in a world without other trouble: what it promised it has to keep.
void World::DrawRefusals(uint64_t seed) {
  Random random = SourceOf(seed, Source::kRefusals);
  trouble_.refusals = trouble_.any() && random.Chance(0.15);
  if (trouble_.refusals) lab_.odds.image_refused = random.Between(100, 1000) / 1000.0;
}

// From a source of its own, too. Of half of the faults the agent knows nothing until a start fails.
void World::DrawFaults(uint64_t seed) {
  Random random = SourceOf(seed, Source::kFaults);
  trouble_.faults = random.Chance(0.2);
  if (!trouble_.faults) return;
  for (int i = random.Between(1, 4); i > 0; --i) {
    Node& node = nodes_[random.Below(static_cast<int>(nodes_.size()))];
    lab_.timeline.After(random.Between(1s, 150s),
                        [this, &node, seen = random.Chance(0.5), so_long = random.Between(1s, 200s)] {
                          if (calm_) return;
                          lab_.trace(node.machine->node().value(), "nothing can start here");
                          node.machine->fault = "no task can start on this node";
                          node.machine->fault_is_seen = seen;
                          lab_.timeline.After(so_long, [&node] { node.machine->fault.clear(); });
                        });
  }
}

// From a source of its own, too.
void World::DrawFullTier(uint64_t seed) {
  Random random = SourceOf(seed, Source::kFullTier);
  if (!trouble_.storage || !random.Chance(0.5)) return;
  for (int i = random.Between(1, 4); i > 0; --i) {
    lab_.timeline.After(random.Between(1s, 200s), [this, so_long = random.Between(5s, 100s)] {
      if (calm_) return;
      lab_.trace("world", "the shared tier is full");
      lab_.store.shared_full_until = lab_.timeline.Now() + so_long;
    });
  }
}

// From a source of its own, too.
void World::DrawSilence(uint64_t seed) {
  Random random = SourceOf(seed, Source::kSilence);
  trouble_.silence = random.Chance(0.25);
  if (!trouble_.silence) return;
  for (int i = random.Between(1, 4); i > 0; --i) {
    Node& node = nodes_[random.Below(static_cast<int>(nodes_.size()))];
    lab_.timeline.After(random.Between(1s, 200s),
                        [this, &node, deaf = random.Chance(0.5), so_long = random.Between(1s, 150s)] {
                          FallSilent(node, deaf, so_long);
                        });
  }
}

void World::FallSilent(Node& node, bool deaf, Duration for_so_long) {
  if (calm_ || !node.agent) return;
  node.agent->Hang(deaf);
  lab_.timeline.After(for_so_long, [&node, change = node.change] {
    if (node.agent && change == node.change) node.agent->GoOn();
  });
}

void World::Mishap() {
  if (calm_) return;
  Random& random = lab_.random;
  lab_.timeline.After(random.Between(1s, 25s), [this] { Mishap(); });
  Node& node = AnyNode();
  const NodeId& name = node.machine->node();
  const int what = random.Below(9);
  if (node.burnt) return;
  if (what < 2 && trouble_.deaths) return controller_->Crash();
  if (what < 4 && trouble_.deaths) return StopAgent(node, random.Between(100ms, 60s));
  if (what == 4 && trouble_.deaths) {
    lab_.trace(name.value(), "the power is cut");
    node.has_power = false;
    node.agent.reset();
    node.machine->CutPower();
    if (node.machine->local_in_memory) LoseMemory(name);
    lab_.timeline.After(random.Between(5s, 120s), [this, &node, change = ++node.change] {
      if (change != node.change) return;
      node.has_power = true;
      StartAgent(node);
    });
    return;
  }
  if (what == 5 && trouble_.deaths) {
    for (const auto& [id, process] : node.machine->processes()) {
      lab_.trace(name.value(), "the shim of ", ToString(id), " dies");
      return node.machine->KillShim(id);
    }
    return;
  }
  if (what == 6 && trouble_.network) return network_.BreakOneOf(name);
  if (what == 7 && trouble_.network && !network_.IsCutOff(name)) {
    lab_.trace("network", name.value(), " is cut off");
    network_.CutOff(name);
    lab_.timeline.After(random.Between(1s, 180s), [this, name] { network_.Reconnect(name); });
    return;
  }
  if (what == 8 && trouble_.storage && random.Chance(0.5)) {
    lab_.trace("world", "the file system of the jobs is away");
    lab_.files_away_until = lab_.timeline.Now() + random.Between(5s, 200s);
    return;
  }
  if (what == 8 && trouble_.storage) {
    lab_.trace("world", "the stores are full");
    lab_.store.full_until = lab_.timeline.Now() + random.Between(5s, 60s);
  }
}

}  // namespace siding::simulation
