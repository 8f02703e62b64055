// The planner's reasons, in words.
#pragma once

#include <optional>
#include <string>

#include "planner/frontier.h"

namespace siding {

std::string CountNodes(size_t n);  // "1 node", "3 nodes"

// Why this job, and why this way.
std::string WhyChosen(const Candidate& candidate, const Option& chosen);

// The sentence that says why a job is left alone, from its fields.
std::string KeptText(const PlanKeep& keep);

// A job that is left alone; why is not said yet.
PlanKeep KeepOf(const JobView& job);

// Why it could not be gone within `within`; nullopt if it could.
std::optional<PlanKeep> WhyLate(const Candidate& candidate, Duration within);

// That the request waits for the end of this job.
PlanKeep WhyAwaited(const JobView& job);

// That nothing is touched, as the request is refused.
PlanKeep WhyUntouched(const JobView& job);

// Why this job was left alone though nodes were needed within `within`. `useful`: it is on a node that the
// request could use.
PlanKeep WhyKept(const Candidate& candidate, Duration within, bool useful);

}  // namespace siding
