// What is wrong with the controller and its policy. Pure.
#pragma once

#include "cli/doctor/finding.h"

namespace siding::cli {

Findings ControllersAway(const Answers& answers);  // of several: nobody could take over
Findings PolicyProblems(const Answers& answers);
// A policy that has jobs checkpointed does not say what the shared tier takes from many nodes together.
Findings UnknownBandwidth(const Answers& answers);
Findings Clocks(const Answers& answers);

}  // namespace siding::cli
