// What has happened since the journal began, in numbers that add up and never fall: what counters and
// histograms of the metrics show. Plain values; the functions are pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "common/units.h"
#include "model/job.h"
#include "model/trends.h"

namespace siding {

// What is done to a job, with an end that is seen.
enum class JobAction : uint8_t { kStart, kSuspend, kResume, kCheckpoint, kSave, kKill, kRestore };
inline constexpr JobAction kAllJobActions[] = {
    JobAction::kStart, JobAction::kSuspend, JobAction::kResume, JobAction::kCheckpoint,
    JobAction::kSave,  JobAction::kKill,    JobAction::kRestore};
std::string ToString(JobAction action);
std::optional<JobAction> ParseJobAction(const std::string& name);

struct ActionCount {
  int64_t done = 0, failed = 0;
  Time last_failed;  // 0: none has
  bool operator==(const ActionCount&) const = default;
};

// Upper bounds of buckets, ascending. What is above the last is in one that has no bound.
using Bounds = std::span<const int64_t>;
// By bounds rather than their numbers, so that other bounds can be chosen later.
struct Histogram {
  std::map<int64_t, int64_t>
      counts;       // of each bucket alone, by its upper bound; without those that are empty
  int64_t sum = 0;  // of the values
  bool operator==(const Histogram&) const = default;
};
inline constexpr int64_t kNoBound = INT64_MAX;
void Observe(Histogram& histogram, Bounds bounds, int64_t value);
// How many values there were up to this one, which is a bound, or kNoBound.
int64_t CountUpTo(const Histogram& histogram, int64_t bound);

// Milliseconds.
inline constexpr int64_t kImageMs[] = {100,   250,   500,    1000,   2500,   5000,    10000,
                                       30000, 60000, 120000, 300000, 600000, 1800000, 3600000};
inline constexpr int64_t kMarginMs[] = {-3600000, -600000, -60000, -10000, 0,      1000,    5000,
                                        10000,    30000,   60000,  300000, 600000, 1800000, 3600000};
// From a MiB, each four times the last.
inline constexpr int64_t kImageBytes[] = {1LL << 20, 1LL << 22, 1LL << 24, 1LL << 26, 1LL << 28, 1LL << 30,
                                          1LL << 32, 1LL << 34, 1LL << 36, 1LL << 38, 1LL << 40, 1LL << 42};
// Of observed / predicted, in thousandths.
inline constexpr int64_t kRatios[] = {250,  500,  700,  800,  900,  1000, 1100,
                                      1250, 1500, 2000, 3000, 4000, 8000};
inline constexpr int64_t kVictims[] = {0, 1, 2, 4, 8, 16, 32, 64};

// Of one tier.
struct ImageTotals {
  Histogram ms, bytes;
  bool operator==(const ImageTotals&) const = default;
};

struct Totals {
  std::map<LossBy, int64_t> lost_node_ms{};  // node-milliseconds
  std::map<JobAction, ActionCount> actions{};
  std::map<Tier, ImageTotals> dumps{}, restores{};  // of the bytes of a dump: those that it wrote
  Histogram release_ratios{};                       // of orders that free nodes, in thousandths
  Histogram margins{};                              // start_by less the start, in ms; below 0: missed
  Time last_start;                                  // of a deadline job; 0: none has
  Duration last_margin{0};                          // its margin
  Time last_missed;                                 // 0: none was
  int64_t exact_plans = 0, other_plans = 0;         // that were recorded, and can be kept
  Histogram victims{};                              // jobs that make way, of each of these
  bool operator==(const Totals&) const = default;
};
void Add(Totals& sum, const Totals& other);

}  // namespace siding
