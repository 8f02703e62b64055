// Batch work: Jobs, whose controller makes a pod for each piece of work that is not done, and another in the
// place of one that is gone.
#pragma once

#include <climits>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/kubernetes/cluster.h"

namespace siding::simulation::pods {

// Of a pod that works for so long.
struct PodWish {
  ObjectName name;
  int cpu = 1000;  // thousandths
  Duration work{0};
  int grace = 30;                                  // seconds
  std::map<std::string, std::string> annotations;  // with their prefix
  std::string app;                                 // a label, for budgets
  std::string scheduler = "default-scheduler";
  bool gate = false;   // siding's
  bool saved = false;  // of siding's runtime class
};
Json PodOf(const PodWish& wish, Time now);

struct BatchJob {
  PodWish pod;  // its name is the beginning of its pods'
  int pieces = 1;
  int at_once = 1;
  bool same_names = false;       // as a StatefulSet's: the next one has the name of the one that is gone
  bool in_cluster = false;       // as an object
  bool waits_until_gone = true;  // before another is made for one that is ending
  int most_failures = INT_MAX;   // of pods; with one more it is given up
};

// Not thread-safe.
class Batch {
 public:
  Batch(Lab& lab, Cluster& cluster) : lab_(lab), cluster_(cluster) {}
  void Add(BatchJob job);
  void OnChange(const FakeStore::Event& event);
  // Its user deletes one of them; the collector takes its pods. False: there is none.
  bool DeleteOne();
  // What is not done yet; empty: all is.
  std::string Unrest() const;
  // That each piece was done once.
  void AtTheEnd() const;

 private:
  struct Running {
    BatchJob job;
    std::set<std::string> done;     // uids
    std::set<std::string> failed;   // uids
    std::set<ObjectName> pods;      // not over
    std::set<std::string> leaving;  // uids
    int made = 0;
    bool looks_soon = false;
    bool deleted = false;
    bool marked_done = false;
    std::string uid;  // of its object
  };
  void Look(const std::string& name);
  void LookSoon(const std::string& name);
  void MarkDone(Running& running);
  void GiveUp(const std::string& name);
  // Its pods go when they are found.
  void Collect(const std::string& name);

  Lab& lab_;
  Cluster& cluster_;
  std::map<std::string, Running> jobs_;  // by name
};

}  // namespace siding::simulation::pods
