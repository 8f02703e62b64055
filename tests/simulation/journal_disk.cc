#include "tests/simulation/journal_disk.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::simulation {

absl::StatusOr<Event> JournalDisk::Decode(const Row& row) const {
  Event event{row.seq, row.at, row.job, {}};
  SIDING_ASSIGN_OR_RETURN(event.body, DecodeEventBody(row.kind, row.body));
  return event;
}

absl::Status JournalDisk::Append(const std::vector<Event>& events) {
  Random& random = lab_.random;
  if (random.Chance(lab_.odds.append_fails)) {
    lab_.trace("journal", "cannot be written");
    on_error();
    return absl::UnavailableError("disk I/O error");
  }
  for (const Event& event : events) {
    if (event.seq != state_.last_seq + 1)
      return absl::InternalError(absl::StrCat("event ", event.seq, " does not follow on ", state_.last_seq));
    rows_.push_back({event.seq, event.at, event.job, BodyKind(event.body), EncodeEventBody(event)});
    const absl::StatusOr<Event> kept = Decode(rows_.back());
    if (!kept.ok()) return kept.status();
    Apply(state_, *kept);
    if (std::holds_alternative<JournalRestored>(kept->body)) restored_ = 0;
    lab_.trace("journal", event.seq, " job ", event.job.value(), " ", KindOf(event), ": ", Describe(event));
    on_event(*kept);
  }
  if (random.Chance(lab_.odds.append_unheard)) {
    lab_.trace("journal", "was written, and says that it was not");
    on_error();
    return absl::UnavailableError("disk I/O error");
  }
  if (random.Chance(lab_.odds.crash_after_append)) on_crash();
  return absl::OkStatus();
}

void JournalDisk::Backup() {
  backup_ = rows_;
  lab_.trace("operator", "backs up the journal, which ends at ", state_.last_seq);
}

void JournalDisk::PutBack() {
  rows_ = backup_;
  restored_ = std::max<int64_t>(1, std::ssize(rows_));
  static_cast<DurableState&>(state_) = DurableState();
  Replay([this](const Event& event) { Apply(state_, event); }).IgnoreError();  // each has been decoded before
  lab_.trace("operator", "puts the journal back that ends at ", state_.last_seq);
}

absl::Status JournalDisk::Replay(const std::function<void(const Event&)>& visit) {
  for (const Row& row : rows_) {
    SIDING_ASSIGN_OR_RETURN(const Event event, Decode(row));
    visit(event);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Event>> JournalDisk::Read(int64_t after, size_t limit) const {
  std::vector<Event> events;
  for (const Row& row : rows_) {
    if (row.seq <= after || events.size() == limit) continue;
    SIDING_ASSIGN_OR_RETURN(Event event, Decode(row));
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace siding::simulation
