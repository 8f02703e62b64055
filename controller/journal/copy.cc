#include "controller/journal/copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "controller/journal/database.h"

namespace siding {
namespace {

constexpr int kPagesAtOnce = 1024;
// Between appends: each of them waits for no more than this.
constexpr int kFewPages = 64;
constexpr auto kTurn = std::chrono::milliseconds(1);

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

absl::Status CopyPages(Database& from, Database& to, int pages, const CopyProgress& progress,
                       const std::function<void()>& after_step) {
  std::unique_ptr<sqlite3_backup, FinishBackup> backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"));
  if (backup == nullptr) return to.Error("copy");
  // Busy: in the middle of an append of this very connection.
  const auto goes_on = [](int rc) { return rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED; };
  int rc;
  while (goes_on(rc = sqlite3_backup_step(backup.get(), pages))) {
    const int64_t total = sqlite3_backup_pagecount(backup.get());
    if (progress != nullptr && !progress(total - sqlite3_backup_remaining(backup.get()), total))
      return absl::CancelledError("the copy was not wanted any more");
    after_step();
  }
  backup.reset();  // what went wrong is then the database's error
  return rc == SQLITE_DONE ? absl::OkStatus() : to.Error("copy");
}

absl::Status CopyAtOneMoment(Database& from, Database& to, const CopyProgress& progress) {
  // One transaction: without it every append would restart the copy.
  SIDING_RETURN_IF_ERROR(from.Run("BEGIN"));
  SIDING_RETURN_IF_ERROR(from.Number("SELECT count(*) FROM sqlite_master", 0).status());
  return CopyPages(from, to, kPagesAtOnce, progress, [] {});
}

// An append by the connection that is copied does not restart the copy: SQLite puts it into the copy.
absl::Status CopyInSteps(Database& from, Database& to, const CopyProgress& progress) {
  // What is written to it while an append waits is made durable when it is put in place.
  SIDING_RETURN_IF_ERROR(to.Run("PRAGMA synchronous=OFF"));
  return CopyPages(from, to, kFewPages, progress, [] { std::this_thread::sleep_for(kTurn); });
}

// Nothing beside the file belongs to it: it has no log. `copied` is the last event that it has; 1 if it has
// none, so that it is known for a copy all the same.
absl::Status Mark(Database& copy) {
  SIDING_RETURN_IF_ERROR(copy.Run("PRAGMA journal_mode=DELETE"));
  SIDING_ASSIGN_OR_RETURN(const int64_t last, copy.Number("SELECT max(seq) FROM events", 1));
  return copy.SetMeta("copied", last);
}

using MakeCopy = std::function<absl::Status(Database& copy)>;

absl::Status CopyInto(const std::string& to, const MakeCopy& make) {
  const std::string draft = to + ".part";
  const auto discard = [&] {
    for (const char* part : {"", "-journal", "-wal", "-shm"}) unlink((draft + part).c_str());
  };
  discard();  // of one that died in the middle
  const UniqueFd file(open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoError(errno, absl::StrCat("make ", draft));
  const auto copy = [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(Database database, Database::Open(draft, Database::Mode::kReadWrite));
    SIDING_RETURN_IF_ERROR(make(database));
    return Mark(database);
  };
  absl::Status status = copy();
  if (status.ok()) status = PutInPlace(draft, to);
  if (!status.ok()) discard();
  return status;
}

}  // namespace

absl::Status CopyJournal(const std::string& from, const std::string& to, const CopyProgress& progress) {
  return CopyInto(to, [&](Database& copy) -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(Database source, Database::Open(from, Database::Mode::kReadOnly));
    return CopyAtOneMoment(source, copy, progress);
  });
}

absl::Status CopyBetweenAppends(Database& from, const std::string& to, const CopyProgress& progress) {
  return CopyInto(to, [&](Database& copy) { return CopyInSteps(from, copy, progress); });
}

absl::Status PutInPlace(const std::string& draft, const std::string& path) {
  const UniqueFd file(open(draft.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, absl::StrCat("open ", draft));
  if (fsync(file.get()) != 0) return ErrnoError(errno, absl::StrCat("sync ", draft));
  if (rename(draft.c_str(), path.c_str()) != 0) return ErrnoError(errno, absl::StrCat("rename to ", path));
  return SyncDirectory(path.substr(0, path.rfind('/') + 1));
}

}  // namespace siding
