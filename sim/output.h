// Results as JSON, CSV and a table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/metrics.h"

namespace siding::sim {

// {"trace": ..., "drawn": {parameters and what came of them}, "strategies": [{name, deadline_hit_rate, ...}]}
nlohmann::json ToJson(const Trace& trace, const Workload& workload, const std::vector<Metrics>& metrics);
std::string ToCsv(const nlohmann::json& result);
std::string ToTable(const nlohmann::json& result);
// What was drawn, a line a figure.
std::string DrawnText(const nlohmann::json& result);

}  // namespace siding::sim
