// Huge pages for the memory that GPU state is brought into: a third less time for a drain, a fifth for the
// refill.
//
// The driver takes that memory inside the job's process and has the kernel fill it with pages at once
// (MAP_POPULATE), so advice given afterwards comes too late, and a process cannot ask beforehand: what counts
// is the system's setting at that moment. Where it is "madvise" it is held at "always" during a drain;
// a site that says "never", or "always", has decided, and nothing is touched.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/mutex.h"

namespace siding {

// Thread-safe. Several processes may share the files: the last that lets go puts the setting back, and one
// that was killed counts as having let go.
class HugePages {
 public:
  // `setting` as in /sys/kernel/mm/transparent_hugepage/enabled; `holders` is a file of ours, in a folder
  // that does not outlive the machine's next start. Puts back what dead processes left behind.
  HugePages(std::string setting, std::string holders);

  // While at least one lives, new memory is in huge pages.
  class Hold {
   public:
    explicit Hold(HugePages* pages) : pages_(pages) {}
    ~Hold() { pages_->Release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    HugePages* const pages_;
  };
  // Null if the site has decided otherwise or the setting cannot be written.
  std::unique_ptr<Hold> Take();

 private:
  // Makes this process one of the holders, or not; whether the setting is held at "always" now. Puts it back
  // if no holder is left.
  bool Apply(bool hold);
  void Release();

  const std::string setting_;
  const std::string holders_;
  Mutex mutex_;
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;  // by this process
};

}  // namespace siding
