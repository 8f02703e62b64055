// How fast this node dumps into each tier and restores from it, and drains its GPUs and refills them, from
// what was measured here.
//
// What is reported is the median of the last samples, and how much they spread: how far on the safe side of
// that a deadline needs to be planned is the controller's policy, not the agent's.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"

namespace siding {

enum class Medium { kLocal, kShared, kGpu };
inline Medium MediumOf(v1::Tier tier) { return tier == v1::SHARED ? Medium::kShared : Medium::kLocal; }
enum class Transfer { kDump, kRestore };  // of GPUs: drain, refill

// The q-quantile (0..1) of the values, interpolated linearly. 0 for no values.
double Quantile(std::vector<double> values, double q);

// Thread-safe.
class Rates {
 public:
  // Keeps its samples in `file`; begins with those that are there. An unreadable file counts as none.
  explicit Rates(std::string file);

  // The medium is in that folder now: what was measured of another one is forgotten. `before`: where it was
  // if that was not kept, as by earlier agents.
  void IsAt(Medium medium, const std::string& folder, const std::string& before);
  // Small ones say what the overhead is, large ones what the speed is.
  void Add(Medium medium, Transfer transfer, Bytes bytes, Duration took);
  bool Has(Medium medium) const;
  v1::TierRates Get(Medium medium) const;

 private:
  struct Samples {
    std::deque<double> speeds;     // bytes per second
    std::deque<double> overheads;  // seconds
  };
  v1::Rate Summarize(Medium medium, Transfer transfer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Save() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string file_;
  mutable Mutex mutex_;
  std::map<std::pair<Medium, Transfer>, Samples> samples_ ABSL_GUARDED_BY(mutex_);
  std::map<Medium, std::string> folders_ ABSL_GUARDED_BY(mutex_);
};

// Writes 64 MiB and one block into the folder, syncs and reads them back, adds what it measured, and leaves
// nothing behind. `tier_folder` must exist.
absl::Status ProbeTier(const std::string& tier_folder, Medium medium, Rates& rates);

}  // namespace siding
