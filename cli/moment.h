// Moments as people write them. Site files and cluster managers' objects take RFC 3339 only (common/units.h):
// who reads those is elsewhere than who wrote them.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/units.h"

namespace siding::cli {

// "+60s", RFC 3339, or the user's own time: "2026-05-01T12:00" and "12:00", which is the next one, both with
// or without seconds. From 1970 to kLatestTime.
absl::StatusOr<Time> ParseComing(absl::string_view text, Time now,
                                 absl::TimeZone zone = absl::LocalTimeZone());
// "2h" (before `now`), or a time as above; "12:00" is the last one.
absl::StatusOr<Time> ParsePast(absl::string_view text, Time now, absl::TimeZone zone = absl::LocalTimeZone());

}  // namespace siding::cli
