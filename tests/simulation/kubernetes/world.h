// One simulated Kubernetes cluster with siding's controller, from its first moment until it has come to rest.
// Everything follows from the seed.
#pragma once

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/kubernetes/agents.h"
#include "tests/simulation/kubernetes/batch.h"
#include "tests/simulation/kubernetes/budgets.h"
#include "tests/simulation/kubernetes/controller.h"
#include "tests/simulation/kubernetes/kubelets.h"
#include "tests/simulation/kubernetes/lives.h"
#include "tests/simulation/kubernetes/scheduler.h"
#include "tests/simulation/kubernetes/victims.h"
#include "tests/simulation/outcome.h"

namespace siding::simulation::pods {

// Prints everything that happens if `print`.
Outcome RunWorld(uint64_t seed, bool print);

// Which kinds of trouble a world has.
struct Trouble {
  bool calls = false;    // fail, or take long
  bool watches = false;  // break, lag, expire
  bool deaths = false;   // of the controller
  bool takeovers = false;
  bool nodes = false;    // are cut off, lose power, vanish
  bool objects = false;  // siding's own are deleted, and etcd forgets
  bool storage = false;  // the journal's disk fails
  bool users = false;    // delete, replace and forge
  bool budgets = false;
  bool agents = false;  // of nodes: die, hang, are cut off; their work fails
  bool ends = false;    // of pods, which nobody has asked for: they are evicted by their kubelets, or fail
  bool any() const {
    return calls || watches || deaths || takeovers || nodes || objects || storage || users || budgets ||
           agents || ends;
  }
};

// Not thread-safe.
class World {
 public:
  World(uint64_t seed, bool print);
  Outcome Run();

 private:
  // ---- world.cc ----
  void StartController();
  void StartLater(Duration after);
  void TakeOver();
  void Sweep();
  void CalmDown();
  void LookForRest();
  std::string Unrest();
  void DeleteRefused();
  void CheckPromises();

  // ---- users.cc ----
  void DrawTrouble();
  void DrawAgents();
  void DrawPolicy();
  void DrawWork();
  void MakeBatch(int number);
  void MakeBystander(int number);
  void MakeRequest(int number);
  void AskFor(const PodWish& wish, int pods);
  void DeleteRequest();
  void DeleteRequests();
  std::string RequestUnrest();
  void MakeOddPod(int number);
  void DrawMishaps();
  void Mishap();
  void UserMishap();
  void AgentMishap();
  void EndOne();
  void Withdraw();
  void UseUpBudget(const Json& pod);
  std::string AnyNode();

  Lab lab_;
  Trouble trouble_;
  ControllerOptions options_;
  Cluster cluster_{lab_};
  Containers containers_{lab_};
  Kubelets kubelets_{lab_, cluster_, containers_};
  Scheduler scheduler_{lab_, cluster_};
  Batch batch_{lab_, cluster_};
  BudgetKeeper budgets_{lab_, cluster_};
  JournalDisk journal_{lab_};
  SealDisk seal_;
  Audit audit_{lab_, cluster_, journal_.state()};
  Victims victims_{lab_, cluster_, audit_, journal_.state()};
  Network network_;
  simulation::Network streams_{lab_};
  Agents agents_{lab_, containers_, streams_};
  Lives lives_of_pods_{lab_, cluster_, containers_, audit_, journal_.state()};
  SharedPacer pacer_{lab_};
  std::list<std::unique_ptr<Controller>>
      controllers_;  // the last one acts; others are dead, or do not know it
  int lives_ = 0;
  int to_make_ = 0;
  std::set<JobId> refused_;
  bool calm_ = false, rests_ = false;
  Time give_up_;
};

}  // namespace siding::simulation::pods
