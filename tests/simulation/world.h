// One simulated world, from its first moment until it has come to rest: a controller, nodes with agents,
// users, and what goes wrong. Everything follows from the seed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/agent.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/controller.h"
#include "tests/simulation/outcome.h"

namespace siding::simulation {

inline const Caller kOperator{0, "root", true};

// Prints everything that happens if `print`.
Outcome RunWorld(uint64_t seed, bool print);

// Which kinds of trouble a world has.
struct Trouble {
  bool verbs = false;       // users and operators ask for things
  bool deaths = false;      // of the controller, agents and nodes
  bool network = false;     // connections break, nodes are cut off
  bool beyond = false;      // single messages go astray
  bool operations = false;  // what agents do fails, or takes long
  bool storage = false;     // journal and stores fail
  bool put_back = false;    // an older copy of the journal takes its place
  bool silence = false;     // agents hold their connections and say nothing
  bool burn = false;        // a node is gone for good, with its disk
  bool wrong_loss = false;  // a node is called lost, and is not
  bool in_memory = false;   // nodes' own images are gone with their power
  bool faults = false;      // on a node nothing can start for a while
  bool refusals = false;    // criu makes images that it does not take back
  bool any() const {
    return verbs || deaths || network || beyond || operations || storage || put_back || silence || burn ||
           wrong_loss || faults;
  }
};

// Not thread-safe.
class World {
 public:
  World(uint64_t seed, bool print);
  Outcome Run();

 private:
  struct Node {
    std::unique_ptr<Machine> machine;
    std::unique_ptr<Agent> agent;
    bool has_power = true;
    bool burnt = false;  // with all that is on its disk
    int change = 0;      // counts what was done to it, so that an older intention is void
  };

  // Without what is kept free for requests, which is never a batch job's.
  int NodesForJobs() const { return static_cast<int>(nodes_.size()) - policy_.headroom_nodes; }

  // ---- world.cc ----
  void MakeNodes();
  void StartAgent(Node& node);
  void StopAgent(Node& node, Duration for_so_long);
  void CalmDown();
  void LookForRest();
  bool LacksImage(const CheckpointRecord& checkpoint) const;
  void ResumeFrozen();

  // ---- workload.cc ----
  void DrawTrouble();
  void DrawPolicy();
  void DrawJobs(uint64_t seed);
  JobSpec DrawSpec();
  void Submit(const JobSpec& spec, Duration start_within);
  void AskSomething();
  void DrawQueueVerbs(uint64_t seed);
  void AskOfTheQueue();

  // ---- faults.cc ----
  void DrawOdds();
  void DrawMishaps();
  void DrawPutBack(uint64_t seed);
  void DrawBurn(uint64_t seed);
  void BurnOne(Random& random, std::optional<Duration> away);
  void DrawWrongLoss(uint64_t seed);
  void DrawMemory(uint64_t seed);
  void LoseMemory(const NodeId& name);
  void LoseWrongly(Random& random);
  void CutOffOnceHeard(const NodeId& name, Duration for_so_long);
  void DrawRefusals(uint64_t seed);
  void DrawFaults(uint64_t seed);
  void DrawFullTier(uint64_t seed);
  void DrawSilence(uint64_t seed);
  void FallSilent(Node& node, bool deaf, Duration for_so_long);
  void Mishap();
  Node& AnyNode() { return nodes_[lab_.random.Below(static_cast<int>(nodes_.size()))]; }

  Lab lab_;
  Network network_{lab_};
  Trouble trouble_;
  Policy policy_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<Checks> checks_;
  std::vector<Node> nodes_;
  AgentOptions agent_options_;
  std::vector<JobId> jobs_;
  int agents_started_ = 0;
  int to_submit_ = 0;
  bool calm_ = false;
  bool rests_ = false;
  Time give_up_;
  Random queue_random_{0};  // of what is asked of the queue
};

}  // namespace siding::simulation
