// An order that is planned and not given, for people. Pure.
#pragma once

#include <string>

#include "siding/v1/api.pb.h"

namespace siding::cli {

// Lines that end with a newline. Times count from when the plan was made.
std::string ActionText(const v1::ActionPlan& plan);

}  // namespace siding::cli
