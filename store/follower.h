// Follows the page files of a draft while CRIU writes them: hashes what was appended and starts its
// write-back, so that sealing the draft has only the tails left to do.
//
// Only files named pages-*.img are followed, because CRIU only appends to those; every other file may be
// rewritten at any time and is hashed when the draft is sealed. A followed file that is seen to shrink, or to
// be another file than before, is not followed any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "common/mutex.h"
#include "common/units.h"
#include "store/checksum.h"

namespace siding::store {

// The hash of the first `hashed` bytes of one file, which was `inode` then.
struct PartialHash {
  StreamHash hash;
  int64_t hashed = 0;
  uint64_t inode = 0;
};

// Owns a thread. The counters may be read from any thread; Stop() is for the owner.
class Follower {
 public:
  // With `only_count` nothing is hashed and nothing sent to the disk.
  explicit Follower(std::string folder, bool only_count = false);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Size of all files when the folder was last looked at (a few times in every 0.1 s).
  Bytes seen() const { return {seen_.load()}; }
  // How much of that is hashed already.
  Bytes hashed() const { return {hashed_.load()}; }

  // Ends the thread; returns what it knows, by file name. The second call returns nothing.
  std::map<std::string, PartialHash> Stop();

 private:
  struct Followed {
    PartialHash partial;
    int64_t written_back = 0;  // bytes whose write-back was started
    bool given_up = false;
  };

  void Run();
  // True if there was more to do than one turn takes.
  bool Scan();
  // False if the file is not one to be followed.
  bool Follow(int folder, const std::string& name, Followed& file, bool& more);

  const std::string folder_;
  const bool only_count_;
  std::atomic<int64_t> seen_{0};
  std::atomic<int64_t> hashed_{0};
  std::map<std::string, Followed> files_;  // the thread's, until it is joined
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace siding::store
