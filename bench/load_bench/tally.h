// What became of the jobs, as the events tell it.
#pragma once

#include <map>
#include <string>

#include "common/mutex.h"
#include "common/units.h"
#include "siding/v1/api.pb.h"

namespace siding {

// Thread-safe.
class Tally {
 public:
  struct Numbers {
    int64_t events = 0, submitted = 0, ended = 0, preemptions = 0, checkpoints = 0;
    int64_t met = 0, late = 0, refused = 0;  // requests
  };
  void AddRequest(int64_t job, Time start_by);
  void AddRefusal();
  void AddEvent(const v1::Event& event);
  // A request whose deadline has passed without a start is late, however late it will be.
  Numbers At(Time now) const;

 private:
  mutable Mutex mutex_;
  Numbers numbers_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Time> requests_ ABSL_GUARDED_BY(mutex_);  // that have not started: their deadlines
};

}  // namespace siding
