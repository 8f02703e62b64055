// Limits how much each user may cause to be written to the journal: requests and bytes an hour, as a token
// bucket. After an hour without requests a user has the whole amount again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "common/units.h"
#include "model/policy.h"

namespace siding {

// The size of those parts of a spec whose length its submitter chooses.
size_t BytesOf(const JobSpec& spec);

// Not durable: a restarted controller begins with full buckets. Not thread-safe.
class RateLimits {
 public:
  // Takes a request of so many bytes from what `uid` may have. kResourceExhausted, naming the policy's field
  // and when to ask again: there is not so much left, and nothing is taken.
  absl::Status Take(uint32_t uid, size_t bytes, const Policy& policy, Time now);
  // How often it was refused.
  int64_t refused() const { return refused_; }

 private:
  static constexpr size_t kMostKept = 1000;  // users; beyond that, those with full buckets are dropped

  // What is used up, and comes back with time.
  struct Used {
    double requests = 0;
    double bytes = 0;
    Time at;
  };
  static void Refill(Used& used, const Policy& policy, Time now);

  std::map<uint32_t, Used> users_;
  int64_t refused_ = 0;
};

}  // namespace siding
