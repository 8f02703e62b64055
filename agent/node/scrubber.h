// Reads the images of a node back, slowly, so that a damaged one is found while there is an older one to fall
// back to.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"
#include "siding/v1/agent.pb.h"
#include "store/store.h"

namespace siding {

struct ScrubOptions {
  Duration interval{0};  // from the beginning of one round to that of the next; 0: never
  Bytes rate{16 << 20};  // read in a second, at most
};

// How long to wait so that `done` bytes, of which the reading alone took `taken`, are no more than `rate`
// allows.
Duration PauseFor(Bytes done, Duration taken, Bytes rate);

// Thread-safe.
class Scrubber {
 public:
  struct Tier {
    v1::Tier tier = v1::LOCAL;
    // Null while it is not open. One that was returned outlives the scrubber.
    std::function<const ImageStore*()> store;
    // Whether an image is this node's to read: of a shared tier each node reads those that it made.
    std::function<bool(const Manifest&)> is_ours;
  };

  // `file` remembers over the agent's death when the last round began.
  Scrubber(ScrubOptions options, std::string file, std::vector<Tier> tiers, const Clock& clock);
  ~Scrubber();  // ends a round that is under way
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  // Rounds at the interval, on a thread of its own.
  void Start();
  // Reads everything once; returns early if the scrubber is being destroyed.
  void Round();
  // When the next round is due.
  Time NextRound() const;

  // What was found and not forgotten. Looks at no disk.
  std::vector<v1::DamagedImage> Damaged() const;
  // It is another one now, or good again.
  void Forget(v1::Tier tier, const ImageKey& key);
  // Forgets those images of the tier that have been deleted since.
  void ForgetDeleted(v1::Tier tier);
  // Read back by this object.
  Bytes read() const { return {read_.load()}; }

 private:
  void Run();
  void RememberRound();
  void ReadBack(const Tier& tier, const ImageStore& store, const ImageKey& key);
  absl::Status Verify(const ImageStore& store, const ImageKey& key);
  bool Stopping() const;

  const ScrubOptions options_;
  const std::string file_;
  const std::vector<Tier> tiers_;
  const Clock& clock_;
  std::atomic<int64_t> read_{0};
  mutable Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::pair<v1::Tier, ImageKey>, std::string> damaged_ ABSL_GUARDED_BY(mutex_);  // and what is wrong
  std::thread thread_;  // last: it uses the others
};

}  // namespace siding
