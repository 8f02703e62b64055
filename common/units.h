// Bytes, times and durations: the types, and the one place where people's spelling of them is parsed.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

using Duration = std::chrono::microseconds;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;

struct Bytes {
  int64_t value = 0;
  auto operator<=>(const Bytes&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  Bytes& operator+=(Bytes other) {
    value += other.value;
    return *this;
  }
  Bytes& operator-=(Bytes other) {
    value -= other.value;
    return *this;
  }
  friend Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
};

// A century: longer than any job. Beyond these two, sums of times and durations could overflow.
inline constexpr Duration kLongestDuration = std::chrono::hours(100 * 365 * 24);
// The end of the year 9999, the last that RFC 3339 can write.
inline constexpr Time kLatestTime{std::chrono::seconds(253'402'300'799)};

// "90s", "1m30s", "2h", "250ms", "1d"; a bare number is an error: say the unit. Never negative, at most
// kLongestDuration.
absl::StatusOr<Duration> ParseDuration(absl::string_view text);
// "512MiB", "1.5GiB", "2GB", "4096" (bytes). Never negative.
absl::StatusOr<Bytes> ParseBytes(absl::string_view text);
// "+60s" (after `now`) or RFC 3339, "2026-05-01T12:00:00Z", from 1970 to kLatestTime.
absl::StatusOr<Time> ParseTime(absl::string_view text, Time now);

// "1m30s", "2.35s", "12ms": about three significant digits, the largest two units.
std::string FormatDuration(Duration d);
// "1.5 GiB"
std::string FormatBytes(Bytes b);
// "2026-05-01T12:00:00.250Z", always UTC, milliseconds.
std::string FormatTime(Time t);

inline double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }
// As long as three hundred years where it would be longer, or is not a number, so that sums stay in range.
inline Duration FromSeconds(double s) {
  constexpr double kMost = 1e16;
  const double us = s * 1e6;
  return Duration(static_cast<int64_t>(us < -kMost ? -kMost : us < kMost ? us : kMost));
}
inline int64_t ToMicros(Time t) { return t.time_since_epoch().count(); }
inline Time FromMicros(int64_t us) { return Time(Duration(us)); }

}  // namespace siding
