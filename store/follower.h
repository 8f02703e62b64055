// Reads along while an image is being written. The pages of a dump are nearly all of its bytes and are only
// ever appended to, so they can be hashed and sent on to the disk while CRIU still writes; what is left when it
// has finished is short. All other files are small, and some are rewritten, so they are hashed at the end.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "store/checksum.h"
#include "store/store.h"

namespace siding {

class Follower {
 public:
  explicit Follower(std::string folder);
  ~Follower();
  // Bytes in the folder's page files when it was last looked at. Any thread.
  Bytes BytesSoFar() const { return Bytes{bytes_.load()}; }
  // Nobody writes any more: everything hashed and on the disk, sorted by name. Once.
  absl::StatusOr<std::vector<ImageFileEntry>> Finish();

 private:
  struct Followed {
    UniqueFd fd;
    int64_t hashed = 0;
    Checksum checksum;
  };
  void Run();
  // Hashes what has been added. False if the file cannot be followed (then it is hashed at the end).
  bool CatchUp(const std::string& name, Followed& file);
  void Look();
  void StopThread();

  const std::string folder_;
  std::atomic<int64_t> bytes_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                  // guarded by mutex_
  std::map<std::string, Followed> files_;  // the thread's, then Finish()'s
  std::string buffer_;
  std::thread thread_;
};

}  // namespace siding
