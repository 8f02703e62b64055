// What the engine has to look at next. Filled by the parts that observe or record something, emptied by
// Engine::Impl::Advance() and Tick().
#pragma once

#include <set>

#include "controller/engine/state/cluster_state.h"

namespace siding {

// Used under the engine's lock.
struct Agenda {
  std::set<JobId> jobs;       // whose reports or state changed since they were last looked at
  std::set<JobId> next_tick;  // to be looked at again by the next Tick()
  bool schedule = true;       // something changed that may let a waiting job continue
  bool desired = false;       // what is desired of the cluster manager has changed

  // Every job is looked at, whatever its state.
  void AddAll(const DurableState& state) {
    for (const auto& [id, job] : state.jobs) jobs.insert(id);
  }
};

}  // namespace siding
