// From chosen victims to plans: who gets which nodes, what is done when, and in words why.
#pragma once

#include <vector>

#include "model/plan.h"
#include "model/snapshot.h"
#include "planner/frontier.h"

namespace siding {

// `requests` in the order of the problem's deadlines, `plans` in the order of the requests. The victims free
// enough nodes by each deadline.
void WritePlans(const Problem& problem, const std::vector<Request>& requests,
                const std::vector<Victim>& victims, std::vector<Plan>& plans);

}  // namespace siding
