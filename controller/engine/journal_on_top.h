// For tests: a journal in memory of which some calls are done otherwise.
#pragma once

#include <memory>

#include "controller/journal/journal.h"

namespace siding {

class JournalOnTop : public Journal {
 public:
  absl::Status Append(const std::vector<Event>& events) override { return kept_->Append(events); }
  absl::Status Replay(const std::function<void(const Event&)>& visit) override {
    return kept_->Replay(visit);
  }
  absl::StatusOr<std::vector<Event>> Read(int64_t after, size_t limit) const override {
    return kept_->Read(after, limit);
  }

 private:
  const std::unique_ptr<Journal> kept_ = NewMemoryJournal();
};

}  // namespace siding
