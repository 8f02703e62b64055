// What happened by hour and by day, for people. Pure.
#pragma once

#include <string>

#include "cli/render.h"
#include "siding/v1/api.pb.h"

namespace siding::cli {

// A line for each day, or each hour, in which something happened, and one for all of them together.
std::string TrendsTable(const v1::TrendsResponse& trends, bool by_hour, const Style& style);

}  // namespace siding::cli
