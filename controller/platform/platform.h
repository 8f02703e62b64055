// Who decides which waiting job starts where: a cluster manager, or on a handful of machines ourselves.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/platform/manager.h"
#include "model/job.h"
#include "model/snapshot.h"

namespace siding {

// A job that waits for nodes.
struct Waiting {
  JobId id;
  int priority = 0;
  Time submitted;
  int nodes = 1;
  Resources per_node;
  std::vector<NodeId> only_on;  // by rank; empty: anywhere (set for images that lie on their nodes)
  std::set<NodeId> not_on;      // a moment ago it could not be restored there
  std::vector<NodeId> avoid;    // unless nothing else is free
  Duration at_most{0};          // how long it will hold its nodes; 0: nobody knows
};

// In the queue: the higher priority, then who came first.
inline bool GoesBefore(const Waiting& a, const Waiting& b) {
  return std::tuple(-a.priority, a.submitted, a.id) < std::tuple(-b.priority, b.submitted, b.id);
}

// By jobs that are there, and have no more time than that.
struct Release {
  Duration within{0};
  Resources what;
};

struct NodeRoom {
  NodeId id;
  Resources free;
  std::vector<Release> releases;  // those that are known of
};

struct Placement {
  JobId job;
  std::vector<NodeId> nodes;  // by rank
};

// Not thread-safe: the engine calls it under its lock.
class Platform {
 public:
  virtual ~Platform() = default;
  // Which of the waiting jobs start now, and where. Must not place more than `room` holds.
  virtual std::vector<Placement> Place(const std::vector<Waiting>& waiting, std::vector<NodeRoom> room) = 0;

  // ---- Of a cluster manager. ----
  // "slurm". It has the queue, and siding places nothing. Empty: siding has the queue.
  virtual std::string manager() const { return ""; }
  // siding decides who makes way. Otherwise the manager does, and siding saves what it can.
  virtual bool steers() const { return true; }
  virtual Capabilities capabilities() const { return {}; }
  // Where it may start this job; nothing: anywhere.
  virtual std::optional<std::set<NodeId>> NodesFor(const JobSpec&) const { return {}; }
  // What the manager makes in the place of a job that ended goes on where that was: DesiredState::next.
  virtual bool continues_jobs() const { return false; }
  // This is desired from now on. Must not block, nor call back into the engine.
  virtual void SetDesired(const DesiredState&) {}
};

// Highest priority first, then first come first served; a job that does not fit holds back the later ones
// of the same or lower priority, so that gangs are not starved: everywhere, or where alone it can go on. Only
// those are let past it that will be gone when it can start by what is known of the others' time (EASY
// backfilling); if that is not known, nobody.
std::unique_ptr<Platform> NewStandalonePlatform();

}  // namespace siding
