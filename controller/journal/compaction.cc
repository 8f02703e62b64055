#include "controller/journal/compaction.h"

#include <utility>

#include "common/status.h"

namespace siding {
namespace {

// In one transaction: milliseconds.
constexpr int64_t kEventsAtOnce = 500;
constexpr size_t kJobsAtOnce = 100;

absl::StatusOr<int64_t> Remove(Database& db, sqlite3_stmt* statement) {
  const int rc = sqlite3_step(statement);
  const int64_t removed = sqlite3_changes64(db.get());
  sqlite3_reset(statement);
  if (rc != SQLITE_DONE) return db.Error("remove");
  return removed;
}

}  // namespace

void Compaction::Add(int64_t seq, std::vector<JobId> jobs) { left_.push_back({seq, std::move(jobs)}); }

bool Compaction::Done() const {
  return left_.empty() || (left_.size() == 1 && left_.front().done == left_.front().jobs.size());
}

absl::StatusOr<int64_t> Compaction::RemoveSome(Database& db) {
  // A number may have been used again since, so only what came before. The row itself says whose event it is:
  // an index may be wrong.
  SIDING_ASSIGN_OR_RETURN(Statement of_job,
                          db.Prepare("DELETE FROM events WHERE job = ?1 AND seq IN "
                                     "(SELECT seq FROM events WHERE job = ?1 AND seq < ?2 LIMIT ?3)"));
  const Forgotten& first = left_.front();
  int64_t removed = 0;
  size_t done = first.done;
  for (size_t jobs = 0; jobs < kJobsAtOnce && done < first.jobs.size(); ++jobs) {
    sqlite3_bind_int64(of_job.get(), 1, first.jobs[done].value());
    sqlite3_bind_int64(of_job.get(), 2, first.seq);
    sqlite3_bind_int64(of_job.get(), 3, kEventsAtOnce - removed);
    SIDING_ASSIGN_OR_RETURN(const int64_t of_this, Remove(db, of_job.get()));
    removed += of_this;
    if (removed >= kEventsAtOnce) break;  // it may have more
    ++done;
  }
  next_done_ = done;
  next_pop_ = done == first.jobs.size() && left_.size() > 1;
  if (next_pop_) {
    SIDING_ASSIGN_OR_RETURN(Statement itself, db.Prepare("DELETE FROM events WHERE seq = ?"));
    sqlite3_bind_int64(itself.get(), 1, first.seq);
    SIDING_ASSIGN_OR_RETURN(const int64_t of_itself, Remove(db, itself.get()));
    removed += of_itself;
  }
  return removed;
}

void Compaction::Committed() {
  left_.front().done = next_done_;
  if (next_pop_) left_.pop_front();
}

}  // namespace siding
