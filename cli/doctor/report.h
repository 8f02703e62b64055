// All checks of `sidingctl doctor`, and what is told of what they find. Pure.
#pragma once

#include "cli/doctor/finding.h"

namespace siding::cli {

// Faults before warnings.
Findings Examine(const Answers& answers);

// What was not looked at, since the caller may not see it; empty: nothing.
std::string NotLookedAt(const Answers& answers);

// A line for each, with its mend below; those that are the same but for what they are about, and when, are
// one.
std::string FindingsText(const Findings& findings);
// An array of objects.
std::string FindingsJson(const Findings& findings);

// 0: nothing, 1: warnings only, 2: faults.
int ExitCodeOf(const Findings& findings);

}  // namespace siding::cli
