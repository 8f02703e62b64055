// The page that a site's committee reads: what was compared, under which assumptions, and what came of it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace siding::sim {

// All plots in one picture.
std::string ReportSvg(const nlohmann::json& result);
// Self-contained: no scripts, nothing that is loaded from elsewhere.
std::string ReportHtml(const nlohmann::json& result);
// By rsvg-convert (Debian: librsvg2-bin).
absl::Status WritePng(const std::string& svg, const std::string& path);

}  // namespace siding::sim
