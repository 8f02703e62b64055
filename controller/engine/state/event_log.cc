#include "controller/engine/state/event_log.h"

#include <algorithm>
#include <utility>

#include "common/logging.h"

namespace siding {

namespace {

// The parts of a spec whose length its submitter chooses are not needed here.
void Shorten(Event& event) {
  if (auto* submitted = std::get_if<JobSubmitted>(&event.body)) DropContents(submitted->spec);
  if (auto* refused = std::get_if<RequestRefused>(&event.body)) DropContents(refused->spec);
}

}  // namespace

void EventLog::Append(std::vector<Event> events) {
  {
    MutexLock lock(mutex_);
    for (Event& event : events) {
      if (event.seq <= newest()) continue;
      Shorten(event);
      recent_.push_back(std::move(event));
      if (recent_.size() > keep_) recent_.pop_front();
    }
  }
  changed_.NotifyAll();
}

absl::StatusOr<std::vector<Event>> EventLog::Read(int64_t seq, size_t limit, Duration wait) const {
  {
    MutexLock lock(mutex_);
    changed_.WaitFor(mutex_, wait, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return newest() > seq; });
    if (newest() <= seq) return std::vector<Event>();
    if (recent_.front().seq <= seq + 1) return Recent(seq, limit);
  }
  auto older = journal_.Read(seq, limit);
  if (!older.ok()) spdlog::warn("old events cannot be read: {}", std::string(older.status().message()));
  return older;
}

std::vector<Event> EventLog::After(int64_t seq, size_t limit, Duration wait) const {
  auto events = Read(seq, limit, wait);
  if (events.ok()) return *std::move(events);
  MutexLock lock(mutex_);
  return Recent(seq, limit);
}

bool EventLog::VisitAfter(int64_t seq, absl::FunctionRef<bool(const Event&)> visit) const {
  MutexLock lock(mutex_);
  if (newest() <= seq) return true;
  if (recent_.front().seq > seq + 1) return false;
  auto event = std::upper_bound(recent_.begin(), recent_.end(), seq,
                                [](int64_t s, const Event& e) { return s < e.seq; });
  while (event != recent_.end() && visit(*event)) ++event;
  return true;
}

std::vector<Event> EventLog::Recent(int64_t seq, size_t limit) const {
  const auto first = std::upper_bound(recent_.begin(), recent_.end(), seq,
                                      [](int64_t s, const Event& event) { return s < event.seq; });
  const auto count = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(limit), recent_.end() - first);
  return std::vector<Event>(first, first + count);
}

}  // namespace siding
