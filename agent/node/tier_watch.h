// Checks a tier regularly, on a thread of its own: a file system whose server is away blocks its callers,
// and that must not be the thread that talks to the controller.
#pragma once

#include <functional>
#include <thread>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// Thread-safe.
class TierWatch {
 public:
  // What was seen longer ago than this says nothing any more: the next look hangs.
  static constexpr Duration kOldest = std::chrono::seconds(30);

  // `look` returns the tier's free space, 0 if it is away. It is called once here, and then on the thread.
  // What it uses, and `clock`, outlive this object.
  TierWatch(std::function<Bytes()> look, const Clock& clock);
  ~TierWatch();  // waits for a look that is under way
  TierWatch(const TierWatch&) = delete;
  TierWatch& operator=(const TierWatch&) = delete;

  // Never blocks. 0 if the tier is away, or does not answer.
  Bytes free() const;

 private:
  void Look();
  void Run();

  const std::function<Bytes()> look_;
  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar stop_;
  Bytes free_ ABSL_GUARDED_BY(mutex_);
  Time seen_ ABSL_GUARDED_BY(mutex_);  // when the look began that found it
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace siding
