#include "absl/strings/str_cat.h"
#include "controller/journal/journal.h"

namespace siding {
namespace {

class MemoryJournal final : public Journal {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    int64_t seq = events_.empty() ? 0 : events_.back().seq;
    for (const Event& event : events) {
      if (event.seq != ++seq) {
        return absl::InternalError(absl::StrCat("event ", event.seq, " does not follow on ", seq - 1));
      }
    }
    events_.insert(events_.end(), events.begin(), events.end());
    return absl::OkStatus();
  }
  absl::Status Replay(int64_t after, const std::function<void(const Event&)>& visit) override {
    for (const Event& event : events_) {
      if (event.seq > after) visit(event);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Event> events_;
};

}  // namespace

std::unique_ptr<Journal> NewMemoryJournal() { return std::make_unique<MemoryJournal>(); }

}  // namespace siding
