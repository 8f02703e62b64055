#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/mutex.h"
#include "controller/journal/journal.h"

namespace siding {
namespace {

class MemoryJournal final : public Journal {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    MutexLock lock(mutex_);
    int64_t seq = events_.empty() ? 0 : events_.back().seq;
    for (const Event& event : events) {
      if (event.seq != ++seq) {
        return absl::InternalError(absl::StrCat("event ", event.seq, " does not follow on ", seq - 1));
      }
    }
    events_.insert(events_.end(), events.begin(), events.end());
    return absl::OkStatus();
  }
  absl::Status Replay(const std::function<void(const Event&)>& visit) override {
    MutexLock lock(mutex_);
    for (const Event& event : events_) visit(event);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const override {
    MutexLock lock(mutex_);
    const auto first = std::upper_bound(events_.begin(), events_.end(), after,
                                        [](int64_t seq, const Event& event) { return seq < event.seq; });
    const auto count = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(limit), events_.end() - first);
    return std::vector<Event>(first, first + count);
  }

 private:
  mutable Mutex mutex_;
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Journal> NewMemoryJournal() { return std::make_unique<MemoryJournal>(); }

}  // namespace siding
