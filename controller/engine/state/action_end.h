// How what was done to a job has ended.
#pragma once

#include <optional>

#include "controller/engine/state/cluster_state.h"
#include "model/totals.h"

namespace siding {

struct ActionEnd {
  JobAction action = JobAction::kStart;
  bool done = false;  // else it has failed
  bool operator==(const ActionEnd&) const = default;
};

// By this move of the job, which is as it was before; nothing: it ends none. What its program, its user or a
// later order has cut short has neither been done nor failed. Pure.
std::optional<ActionEnd> EndOf(const JobRecord& job, const JobMoved& move);

}  // namespace siding
