// When a controller that wants a journal may take it from the one that has it. Pure; not thread-safe.
//
// Only its own clock is asked, which must not be one that is set: the clocks of two machines are never
// compared.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/units.h"
#include "controller/journal/lease_record.h"

namespace siding {

// A holder that has not been heard of for so long may be replaced. It renews its lease far more often.
constexpr Duration kLeaseLasts = std::chrono::seconds(6);

class LeaseWatch {
 public:
  enum class Verdict {
    kFree,     // to be taken now
    kHeld,     // its holder lives
    kUnknown,  // it is too early to say
  };

  // `boot`: of this machine's kernel.
  explicit LeaseWatch(std::string boot) : boot_(std::move(boot)) {}

  // To be told of every look. `locked`: whether a process holds the lock that goes with the record's epoch.
  Verdict Look(const LeaseRecord& record, bool locked, Time now) {
    const bool first = !seen_;
    if (first || *seen_ != record) {
      since_ = now;
      seen_ = record;
    }
    if (record.epoch == 0 || record.released) return Verdict::kFree;
    // The kernel that would know of the lock is ours, or no other kernel can hold it: the holder is dead.
    const bool same_machine = record.boot == boot_;
    if (!locked && (same_machine || !record.shared)) return Verdict::kFree;
    if (now - since_ >= kLeaseLasts) return Verdict::kFree;
    return same_machine || (!first && since_ == now) ? Verdict::kHeld : Verdict::kUnknown;
  }

  // As it was at the last look.
  const LeaseRecord& seen() const { return *seen_; }

 private:
  const std::string boot_;
  std::optional<LeaseRecord> seen_;
  Time since_;
};

}  // namespace siding
