#include "controller/journal/ended_contents.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "common/status.h"
#include "controller/journal/checksum.h"
#include "controller/journal/event_row.h"

namespace siding {
namespace {

// In one transaction: milliseconds.
constexpr size_t kJobsAtOnce = 500;
constexpr size_t kBytesAtOnce = size_t{4} << 20;
// Bytes. What is shorter is not worth a write.
constexpr int64_t kLong = 4096;

bool EndsItsJob(const Event& event) {
  const auto* moved = std::get_if<JobMoved>(&event.body);
  if (moved == nullptr) return false;
  return moved->event == JobEvent::kCancelled || moved->event == JobEvent::kSucceeded ||
         moved->event == JobEvent::kFailed || moved->event == JobEvent::kStartFailed;
}

// The first long one.
absl::StatusOr<std::optional<EventRow>> LongSubmission(Database& db, JobId job, int64_t before) {
  SIDING_ASSIGN_OR_RETURN(Statement select,
                          db.Prepare("SELECT seq, at_us, job, kind, body, checksum FROM events WHERE job = ?"
                                     " AND seq < ? AND kind = 'submitted' AND length(body) > ?"));
  sqlite3_bind_int64(select.get(), 1, job.value());
  sqlite3_bind_int64(select.get(), 2, before);
  sqlite3_bind_int64(select.get(), 3, kLong);
  const int rc = sqlite3_step(select.get());
  if (rc == SQLITE_DONE) return std::optional<EventRow>();
  if (rc != SQLITE_ROW) return db.Error("look for what ended jobs were started with");
  SIDING_ASSIGN_OR_RETURN(EventRow row, ReadRow(db, select.get()));
  return row;
}

absl::Status Put(Database& db, const EventRow& row) {
  SIDING_ASSIGN_OR_RETURN(Statement update,
                          db.Prepare("UPDATE events SET body = ?, checksum = ? WHERE seq = ?"));
  sqlite3_bind_text(update.get(), 1, row.body.data(), static_cast<int>(row.body.size()), SQLITE_STATIC);
  sqlite3_bind_int64(update.get(), 2, EventChecksum(row.seq, row.at_us, row.job, row.kind, row.body));
  sqlite3_bind_int64(update.get(), 3, row.seq);
  return sqlite3_step(update.get()) == SQLITE_DONE ? absl::OkStatus() : db.Error("shorten an event");
}

}  // namespace

void EndedContents::Add(const Event& event) {
  if (EndsItsJob(event)) ended_.push_back({event.seq, event.job});
}

absl::Status EndedContents::DropSome(Database& db) {
  size_t bytes = 0;
  for (done_ = 0; done_ < std::min(kJobsAtOnce, ended_.size()) && bytes < kBytesAtOnce; ++done_) {
    const Ended& ended = ended_[done_];
    SIDING_ASSIGN_OR_RETURN(std::optional<EventRow> row, LongSubmission(db, ended.job, ended.seq));
    if (!row) continue;
    bytes += row->body.size();
    SIDING_ASSIGN_OR_RETURN(EventBody body, DecodeEventBody(row->kind, row->body));
    JobSpec& spec = std::get<JobSubmitted>(body).spec;
    // Its cluster manager may start it again.
    if (!spec.cluster_manager.empty()) continue;
    DropAllButCommand(spec);
    row->body = EncodeEventBody({row->seq, FromMicros(row->at_us), JobId(row->job), std::move(body)});
    SIDING_RETURN_IF_ERROR(Put(db, *row));
  }
  return absl::OkStatus();
}

void EndedContents::Committed() {
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(done_));
  done_ = 0;
}

}  // namespace siding
