// Follows when a program's own certificate expires, through its renewals, and says in the log when that is
// near.
#pragma once

#include <optional>
#include <string>

#include "common/clock.h"
#include "common/expiry.h"
#include "common/mutex.h"

namespace siding {

// Thread-safe.
class ExpiryWatch {
 public:
  // PEM; empty: there is none. `clock` outlives it.
  ExpiryWatch(std::string file, const Clock& clock) : file_(std::move(file)), clock_(clock) {}

  // To be called often: reads the file once a minute. None: there is none, or it cannot be read at the
  // moment.
  std::optional<Time> Look() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string file_;
  const Clock& clock_;
  Mutex mutex_;
  std::optional<Time> looked_ ABSL_GUARDED_BY(mutex_), ends_ ABSL_GUARDED_BY(mutex_);
  Expiry told_ ABSL_GUARDED_BY(mutex_) = Expiry::kFar;
};

}  // namespace siding
