// What happened by hour and by day of UTC, in numbers that add up: deadlines, lost work, whether predictions
// were right, and how fast images were written. Plain values; the functions are pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/units.h"
#include "model/job.h"

namespace siding {

// How a job left its nodes, or came to a stop there, that lost something by it.
enum class LossBy : uint8_t { kSuspend, kCheckpoint, kApp, kKill, kFailure };
std::string ToString(LossBy by);
std::optional<LossBy> ParseLossBy(const std::string& name);

struct ImageWrites {
  int64_t images = 0;
  Bytes bytes;
  Duration took{0};  // added up
  bool operator==(const ImageWrites&) const = default;
};

// Of one hour, or one day.
struct Trend {
  int64_t met = 0, missed = 0, refused = 0;  // deadlines
  int64_t preemptions = 0;
  std::map<LossBy, int64_t> lost_node_ms{};  // node-milliseconds; without those that are none
  // Of orders that free nodes: how many took so many times what was predicted, by RatioStep().
  std::map<int, int64_t> releases{};
  std::map<Tier, ImageWrites> writes{};
  bool operator==(const Trend&) const = default;
};
void Add(Trend& sum, const Trend& other);

// Steps of a scale of observed / predicted, eight to each doubling: 0 is as predicted. It ends at 32 times,
// and at a 32nd. What is shorter than a second counts as one: no deadline hangs on the difference.
int RatioStep(Duration observed, Duration predicted);
double RatioOf(int step);
// Where so much of them is not above, from 0 to 1; 0: there are none.
double Quantile(const std::map<int, int64_t>& releases, double share);

// By when each hour or day began. Those of which nothing is known are not there.
struct Trends {
  std::map<Time, Trend> hours, days;
  bool operator==(const Trends&) const = default;
};
inline constexpr Duration kOneHour = std::chrono::hours(1);
inline constexpr Duration kOneDay = std::chrono::hours(24);
inline constexpr Duration kHoursKept = 7 * kOneDay;
inline constexpr Duration kDaysKept = 90 * kOneDay;
// That happened at that time.
void Add(Trends& trends, Time at, const Trend& what);
void Add(Trends& trends, const Trends& other);
// Without the hours and days that ended so long ago.
void Trim(Trends& trends, Time now);

}  // namespace siding
