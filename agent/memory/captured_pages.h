// Copies of pages of processes.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/pagemap.h"
#include "common/files.h"

namespace siding {

// As many pages as there is room for are copied into memory that was taken before, the others into a file
// without a name: that takes about twice as long. Not thread-safe.
class CapturedPages {
 public:
  // More room is not taken, of one and of all together.
  static constexpr uint64_t kMostRoom = 128 << 20, kMostRoomOfAll = 256 << 20;
  // `room` in bytes; less is taken if others have it. `file` is empty.
  static absl::StatusOr<CapturedPages> Make(uint64_t room, UniqueFd file);

  // Behind those that were taken before. kCancelled if `stop`, which is asked all the time, says true. Pages
  // that cannot be read come to `unread`, and something takes their places; null: kInternal. kAborted: the
  // process has ended.
  absl::Status Take(pid_t pid, const std::vector<PageRun>& runs, const std::function<bool()>& stop,
                    std::vector<PageRun>* unread = nullptr);
  uint64_t room() const { return room_; }
  uint64_t bytes() const { return in_memory_ + in_file_; }
  absl::Status Read(uint64_t offset, uint64_t bytes, char* to) const;
  // An error: the disk has failed, and what was read of late may be wrong.
  absl::Status CheckFile() const;

 private:
  struct Unmap {
    uint64_t size;
    void operator()(char* memory) const;
  };
  static std::atomic<uint64_t> taken_;  // of all
  CapturedPages(char* memory, uint64_t room, UniqueFd file)
      : memory_(memory, Unmap{room}), room_(room), file_(std::move(file)) {}

  std::unique_ptr<char, Unmap> memory_;
  uint64_t room_;
  UniqueFd file_;
  uint64_t in_memory_ = 0, in_file_ = 0;  // bytes
};

}  // namespace siding
