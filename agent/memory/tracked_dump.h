// A dump to which the kernel says what has been written since the one before.
//
// CRIU leaves the private anonymous memory of such processes out, so the task is stopped for the time that
// only what has changed takes to copy. What has not changed is in the image's parents, as after SharePages().
// All that happens at one stop: CRIU says which areas it has left out (they are "in the parent" in its
// pagemap), and an image of which one of these is not filled cannot be restored.
//
// What is done when:
//
//   Begin()    the task runs; the draft is empty
//   Prepare(), CopyAgain()
//              it runs, and is about to be stopped: copies what has been written by now
//   Capture()  it is stopped, and CRIU has written all that it writes
//   Write()    it runs again
//   Counts()   the image does
//
// Once it has captured anything, and without the last, nothing is known of any process any more, and the next
// dump is whole. One that fails before loses nothing.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/memory/captured_pages.h"
#include "agent/memory/checked_pages.h"
#include "agent/memory/known_areas.h"
#include "agent/memory/memory_tracking.h"
#include "agent/memory/parent_pages.h"
#include "agent/memory/precopied_pages.h"
#include "agent/memory/precopy.h"
#include "common/files.h"
#include "common/units.h"
#include "store/store.h"

namespace siding {

class NewPages;

// Not thread-safe. All that it is given outlives it.
class TrackedDump {
 public:
  // Of a smaller process CRIU copies all: tracking it costs more.
  static constexpr Bytes kLeastTracked{4 << 20};
  // More processes of a task are not. As many descriptors wait in a socket.
  static constexpr size_t kMostTracked = 64;

  // Without a base of the draft nothing is left out. What is copied waits in `scratch`, which is to be near,
  // until it is in the draft.
  TrackedDump(MemoryTracking& tracking, pid_t init, ImageKey key, ImageDraft& draft,
              const ImageStore& scratch)
      : tracking_(tracking), init_(init), key_(std::move(key)), draft_(draft), scratch_(scratch) {}
  ~TrackedDump();
  TrackedDump(const TrackedDump&) = delete;
  TrackedDump& operator=(const TrackedDump&) = delete;

  // Decides the two lists. An error: the draft is of no use.
  absl::Status Begin();
  // Of these CRIU writes no private anonymous memory.
  std::vector<pid_t> LeftOut() const;
  // What CRIU is to know of their mappings: see CriuDump.
  std::map<pid_t, int> AreaFiles() const;
  // These are to make userfaultfds, and give them.
  const std::vector<pid_t>& ToTrack() const { return to_track_; }
  void Give(pid_t pid, UniqueFd userfaultfd) { given_[pid] = std::move(userfaultfd); }

  // Copies what has been written, and reads what CRIU is to know. `stop` is asked all the time: true ends the
  // copying.
  void Prepare(const std::function<bool()>& stop);
  // Once more, if it has to wait after that.
  void CopyAgain(const std::function<bool()>& stop);
  // By each round, at most.
  Duration stopped() const { return precopy_ ? precopy_->stopped() : Duration(0); }

  // An error: the image lacks pages. kCancelled if `stop`, which is asked all the time, says true.
  absl::Status Capture(const std::function<bool()>& stop);

  struct Written {
    std::set<std::string> pagemaps;  // of the memories that are whole now, with their parents
    Bytes unused;                    // as SharePages() returns it
    Bytes fresh;                     // of their pages
    Bytes precopied;                 // while they ran, some of them twice
  };
  // As Capture(). Reads all that is shared of the base, where that is near; else at times only, and always
  // what is written again. Once. kAborted as KnownAreas::Check().
  absl::StatusOr<Written> Write(const SharingLimits& limits);
  void Counts();

 private:
  struct LeftOutMemory {
    std::string name;  // of the pagemap
    ParentPages parents;
    WriteTracker::Count count;         // before it was stopped
    Pagemap own;                       // as CRIU has written it
    std::vector<SourcedPages> pages;   // that were left out; offsets of kProcess are in captured_
    std::vector<SourcedPages> sample;  // some that are said to be unchanged, to be compared: one page each
    uint64_t sample_at = 0;            // where they are in captured_, as they were when it was stopped
    CheckedPages checked;              // others, of the base, as they were before
    bool is_scattered = false;         // too much to go on with the base
  };

  uint64_t BytesLeftOut() const;
  absl::Status BeginProcess(pid_t pid);
  absl::Status LeaveOut(pid_t pid, const WriteTracker::Count& count);
  absl::Status MakeRoom();
  void NoteCopied(absl::Status may_copy);
  absl::Status CaptureAll(const std::function<bool()>& stop);
  absl::Status CaptureProcess(pid_t pid, LeftOutMemory& memory, const std::function<bool()>& stop);
  absl::Status BeginLaps(const std::function<bool()>& stop);
  bool IsBaseRead() const;
  void TakeToCheck(const std::function<bool()>& stop);
  absl::StatusOr<Written> WriteAll(const SharingLimits& limits);
  absl::Status WriteMemory(LeftOutMemory& memory, const SharingLimits& limits, Written& written) const;
  absl::Status WritePages(const LeftOutMemory& memory, const std::function<bool()>& stop, NewPages& to) const;
  absl::Status Read(const LeftOutMemory& memory, const SourcedPages& pages, uint64_t from, uint64_t bytes,
                    char* to) const;
  absl::Status CheckUnchanged(const LeftOutMemory& memory, const std::function<bool()>& stop) const;
  absl::Status HasChanged(const LeftOutMemory& memory, uint64_t address,
                          const std::function<bool()>& stop) const;
  absl::Status CheckNothingIsMissing(const std::set<std::string>& whole) const;
  // A failure that says that tracking does not work here is the last of this task.
  absl::Status Judge(absl::Status status);

  MemoryTracking& tracking_;
  const pid_t init_;
  const ImageKey key_;
  ImageDraft& draft_;
  const ImageStore& scratch_;
  std::map<pid_t, LeftOutMemory> left_out_;
  std::vector<pid_t> to_track_;
  std::map<pid_t, UniqueFd> given_;
  std::optional<CapturedPages> precopied_, captured_;
  std::optional<KnownAreas> known_;
  std::optional<Precopy> precopy_;
  absl::Status may_copy_;   // else why no more is copied while it runs
  bool uncounted_ = false;  // what is known of the pages is since an image that does not count yet
};

}  // namespace siding
