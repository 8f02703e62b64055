#include "common/units.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace siding {
namespace {

struct Unit {
  absl::string_view name;
  double factor;
};

constexpr Unit kTimeUnits[] = {{"us", 1},     {"ms", 1e3},   {"s", 1e6},    {"m", 60e6},
                               {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};
constexpr Unit kByteUnits[] = {{"", 1},
                               {"B", 1},
                               {"KiB", 1024.0},
                               {"MiB", 1048576.0},
                               {"GiB", 1073741824.0},
                               {"TiB", 1099511627776.0},
                               {"KB", 1e3},
                               {"MB", 1e6},
                               {"GB", 1e9},
                               {"TB", 1e12}};

// Takes "1.5" off the front of `text`; false if there is no number there.
bool TakeNumber(absl::string_view& text, double& number) {
  size_t n = 0;
  while (n < text.size() && (std::isdigit(static_cast<unsigned char>(text[n])) || text[n] == '.')) ++n;
  if (n == 0 || !absl::SimpleAtod(text.substr(0, n), &number)) return false;
  text.remove_prefix(n);
  return true;
}

absl::string_view TakeLetters(absl::string_view& text) {
  size_t n = 0;
  while (n < text.size() && std::isalpha(static_cast<unsigned char>(text[n]))) ++n;
  absl::string_view letters = text.substr(0, n);
  text.remove_prefix(n);
  return letters;
}

template <size_t N>
const Unit* FindUnit(const Unit (&units)[N], absl::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Duration> ParseDuration(absl::string_view text) {
  const auto error = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a duration: expected a number with a unit, such as 90s, 1m30s, 2h or 250ms"));
  };
  absl::string_view rest = text;
  double total = 0;
  if (rest.empty()) return error();
  while (!rest.empty()) {
    double number = 0;
    if (!TakeNumber(rest, number)) return error();
    const Unit* unit = FindUnit(kTimeUnits, TakeLetters(rest));
    if (unit == nullptr) return error();
    total += number * unit->factor;
  }
  if (total > static_cast<double>(kLongestDuration.count())) return error();
  return Duration(static_cast<int64_t>(std::llround(total)));
}

absl::StatusOr<Bytes> ParseBytes(absl::string_view text) {
  absl::string_view rest = text;
  double number = 0;
  const Unit* unit = nullptr;
  if (TakeNumber(rest, number)) {
    if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
    unit = FindUnit(kByteUnits, TakeLetters(rest));
  }
  if (unit == nullptr || !rest.empty() || number * unit->factor > 9e18) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a size: expected a number with a unit, such as 512MiB, 1.5GiB or 2GB"));
  }
  return Bytes{static_cast<int64_t>(std::llround(number * unit->factor))};
}

absl::StatusOr<Time> ParseTime(absl::string_view text, Time now) {
  if (!text.empty() && text.front() == '+') {
    auto after = ParseDuration(text.substr(1));
    if (!after.ok()) return after.status();
    return now + *after;
  }
  absl::Time time;
  std::string error;
  // Abseil also reads years of more digits, and "infinite-future".
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error) || time < absl::UnixEpoch() ||
      time > absl::FromUnixMicros(ToMicros(kLatestTime))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text,
        "' is not a time: expected +DURATION (such as +60s) or RFC 3339 (such as 2026-05-01T12:00:00Z)"));
  }
  return FromMicros(absl::ToUnixMicros(time));
}

std::string FormatDuration(Duration d) {
  // The least has no opposite.
  if (d <= -std::chrono::milliseconds(1))
    return "-" + FormatDuration(d == Duration::min() ? Duration::max() : -d);
  if (d == Duration(0)) return "0s";
  const double s = ToSeconds(d);
  if (s < 0.001) return "<1ms";
  if (s < 1) return absl::StrFormat("%.0fms", s * 1e3);
  if (s < 9.995) return absl::StrFormat("%.2fs", s);
  if (s < 59.95) return absl::StrFormat("%.1fs", s);
  const int64_t whole = std::llround(s);
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  if (whole < 86400) return absl::StrFormat("%dh%02dm", whole / 3600, whole / 60 % 60);
  return absl::StrFormat("%dd%02dh", whole / 86400, whole / 3600 % 24);
}

std::string FormatBytes(Bytes b) {
  static constexpr const char* kNames[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(b.value);
  size_t i = 0;
  while (std::abs(value) >= 1023.95 && i + 1 < std::size(kNames)) {
    value /= 1024;
    ++i;
  }
  return i == 0 ? absl::StrFormat("%d B", b.value) : absl::StrFormat("%.1f %s", value, kNames[i]);
}

std::string FormatTime(Time t) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMicros(ToMicros(t)), absl::UTCTimeZone());
}

}  // namespace siding
