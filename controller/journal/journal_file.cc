#include "controller/journal/journal_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"
#include "controller/journal/database.h"
#include "controller/journal/schema.h"

namespace siding {
namespace {

// -1: there is none.
int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? -1 : static_cast<int64_t>(size);
}

// The last event of a copy that has not been opened since it was made; 0: it is none. A log beside the file
// is left out of account, and may make it look damaged, so errors say nothing.
int64_t CopiedUpTo(const std::string& path) {
  auto db = Database::Open(path, Database::Mode::kImmutable);
  return db.ok() ? db->Meta("copied", 0).value_or(0) : 0;
}

// From now on it is the journal. `restored` stays until the controller has recorded that it was put back.
absl::Status TakeOver(const std::string& path, int64_t last) {
  SIDING_ASSIGN_OR_RETURN(Database db, Database::Open(path, Database::Mode::kReadWrite));
  SIDING_RETURN_IF_ERROR(db.Check());
  SIDING_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  SIDING_RETURN_IF_ERROR(db.SetMeta("restored", last));
  SIDING_RETURN_IF_ERROR(db.Run("DELETE FROM meta WHERE key='copied'"));
  SIDING_RETURN_IF_ERROR(transaction.Commit());
  spdlog::warn("{} is a copy that was put back: it ends with event {}", path, last);
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareJournalFile(const std::string& path) {
  const int64_t size = SizeOf(path);
  const bool has_log = SizeOf(path + "-wal") > 0;
  if (size < 0 && has_log) {
    return absl::DataLossError(
        absl::StrCat(path, " is missing, but its log ", path,
                     "-wal is there. Nothing has been changed. Put back a "
                     "copy of it and remove the log; to begin without any job, remove the log only"));
  }
  if (size < 0) return MakeJournalFile(path);
  if (size == 0) return Damaged(path, "it is empty");
  const int64_t copied = CopiedUpTo(path);
  if (copied == 0) return absl::OkStatus();
  if (has_log) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a copy that was put back, and ", path,
                                                      "-wal beside it is the log of another "
                                                      "journal. Nothing has been changed. Remove ",
                                                      path, "-wal and ", path, "-shm"));
  }
  return TakeOver(path, copied);
}

}  // namespace siding
