// The planner's reasons, in words.
#pragma once

#include <string>

#include "planner/frontier.h"

namespace siding {

std::string CountNodes(size_t n);  // "1 node", "3 nodes"

// Why this job, and why this way.
std::string WhyChosen(const Candidate& candidate, const Option& chosen);

// Why it could not be gone within `within`; "" if it could.
std::string WhyLate(const Candidate& candidate, Duration within);

// That the request waits for the end of this job.
std::string WhyAwaited(const JobView& job);

// Why this job was left alone though nodes were needed within `within`. `useful`: it is on a node that the
// request could use.
std::string WhyKept(const Candidate& candidate, Duration within, bool useful);

}  // namespace siding
