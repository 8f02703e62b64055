#include "controller/journal/copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "controller/journal/database.h"

namespace siding {
namespace {

constexpr int kPagesAtOnce = 1024;

struct FinishBackup {
  void operator()(sqlite3_backup* backup) const { sqlite3_backup_finish(backup); }
};

absl::Status CopyPages(Database& from, Database& to, const CopyProgress& progress) {
  // One transaction: without it every append would begin the copy anew.
  SIDING_RETURN_IF_ERROR(from.Run("BEGIN"));
  SIDING_RETURN_IF_ERROR(from.Number("SELECT count(*) FROM sqlite_master", 0).status());
  std::unique_ptr<sqlite3_backup, FinishBackup> backup(
      sqlite3_backup_init(to.get(), "main", from.get(), "main"));
  if (backup == nullptr) return to.Error("copy");
  int rc;
  while ((rc = sqlite3_backup_step(backup.get(), kPagesAtOnce)) == SQLITE_OK) {
    const int64_t total = sqlite3_backup_pagecount(backup.get());
    if (progress != nullptr && !progress(total - sqlite3_backup_remaining(backup.get()), total))
      return absl::CancelledError("the copy was not wanted any more");
  }
  backup.reset();  // what went wrong is then the database's error
  return rc == SQLITE_DONE ? absl::OkStatus() : to.Error("copy");
}

// Nothing beside the file belongs to it: it has no log. `copied` is the last event that it has; 1 if it has
// none, so that it is known for a copy all the same.
absl::Status Mark(Database& copy) {
  SIDING_RETURN_IF_ERROR(copy.Run("PRAGMA journal_mode=DELETE"));
  SIDING_ASSIGN_OR_RETURN(const int64_t last, copy.Number("SELECT max(seq) FROM events", 1));
  return copy.SetMeta("copied", last);
}

absl::Status MakeCopy(const std::string& from, const std::string& to, const CopyProgress& progress) {
  SIDING_ASSIGN_OR_RETURN(Database source, Database::Open(from, Database::Mode::kReadOnly));
  SIDING_ASSIGN_OR_RETURN(Database copy, Database::Open(to, Database::Mode::kReadWrite));
  SIDING_RETURN_IF_ERROR(CopyPages(source, copy, progress));
  return Mark(copy);
}

}  // namespace

absl::Status CopyJournal(const std::string& from, const std::string& to, const CopyProgress& progress) {
  const std::string draft = to + ".part";
  const auto discard = [&] {
    for (const char* part : {"", "-journal", "-wal", "-shm"}) unlink((draft + part).c_str());
  };
  discard();  // of one that died in the middle
  const UniqueFd file(open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return ErrnoError(errno, absl::StrCat("make ", draft));
  absl::Status status = MakeCopy(from, draft, progress);
  if (status.ok()) status = PutInPlace(draft, to);
  if (!status.ok()) discard();
  return status;
}

absl::Status PutInPlace(const std::string& draft, const std::string& path) {
  const UniqueFd file(open(draft.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoError(errno, absl::StrCat("open ", draft));
  if (fsync(file.get()) != 0) return ErrnoError(errno, absl::StrCat("sync ", draft));
  if (rename(draft.c_str(), path.c_str()) != 0) return ErrnoError(errno, absl::StrCat("rename to ", path));
  return SyncDirectory(path.substr(0, path.rfind('/') + 1));
}

}  // namespace siding
