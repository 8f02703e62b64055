#include "cli/moment.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siding::cli {
namespace {

absl::StatusOr<Time> NotATime(absl::string_view text, absl::string_view relative) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not a time: expected ", relative,
      ", 12:30 or 2026-05-01T12:30 in your own time, or RFC 3339 (such as 2026-05-01T12:00:00Z)"));
}

std::optional<absl::Time> Parsed(const char* format, absl::string_view text, absl::TimeZone zone) {
  absl::Time time;
  std::string error;
  if (text.empty() || absl::ascii_isspace(text.front()) || absl::ascii_isspace(text.back()) ||
      !absl::ParseTime(format, text, zone, &time, &error))
    return std::nullopt;
  return time;
}

// `days`: to move on by if "12:00" is not to be of the same day as `now`: the next one if it was before, the
// last one if it is to come.
std::optional<absl::Time> ParsedOwn(absl::string_view text, absl::Time now, int days, absl::TimeZone zone) {
  for (const char* format : {"%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    if (const auto time = Parsed(format, text, zone)) return time;
  }
  for (const char* format : {"%H:%M", "%H:%M:%S"}) {
    const auto time = Parsed(format, text, absl::UTCTimeZone());
    if (!time) continue;
    const absl::CivilSecond clock = absl::ToCivilSecond(*time, absl::UTCTimeZone());
    const auto on = [&](absl::CivilDay day) {
      return absl::FromCivil(
          absl::CivilSecond(day.year(), day.month(), day.day(), clock.hour(), clock.minute(), clock.second()),
          zone);
    };
    const absl::CivilDay today = absl::ToCivilDay(now, zone);
    const absl::Time then = on(today);
    return (days > 0 ? then > now : then <= now) ? then : on(today + days);
  }
  return std::nullopt;
}

std::optional<Time> Own(absl::string_view text, Time now, int days, absl::TimeZone zone) {
  const auto time = ParsedOwn(text, absl::FromUnixMicros(ToMicros(now)), days, zone);
  if (!time || *time < absl::UnixEpoch() || *time > absl::FromUnixMicros(ToMicros(kLatestTime)))
    return std::nullopt;
  return FromMicros(absl::ToUnixMicros(*time));
}

}  // namespace

absl::StatusOr<Time> ParseComing(absl::string_view text, Time now, absl::TimeZone zone) {
  if (const auto own = Own(text, now, 1, zone)) return *own;
  const auto time = ParseTime(text, now);
  return time.ok() || absl::StartsWith(text, "+") ? time : NotATime(text, "+DURATION (such as +60s)");
}

absl::StatusOr<Time> ParsePast(absl::string_view text, Time now, absl::TimeZone zone) {
  if (const auto own = Own(text, now, -1, zone)) return *own;
  if (const auto ago = ParseDuration(text); ago.ok()) return now - std::min<Duration>(*ago, now - Time{});
  const auto time = absl::StartsWith(text, "+") ? NotATime(text, "") : ParseTime(text, now);
  return time.ok() ? time : NotATime(text, "a duration ago (such as 2h)");
}

}  // namespace siding::cli
