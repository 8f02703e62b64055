#include "controller/journal/journal_file.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"
#include "controller/journal/copy.h"
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

absl::Status MarkRestored(const std::string& path, int64_t last) {
  SIDING_ASSIGN_OR_RETURN(Database db, Database::Open(path, Database::Mode::kReadWrite));
  SIDING_RETURN_IF_ERROR(db.Check());
  SIDING_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db));
  SIDING_RETURN_IF_ERROR(db.SetMeta("restored", last));
  SIDING_RETURN_IF_ERROR(db.Run("DELETE FROM meta WHERE key='copied'"));
  return transaction.Commit();
}

// From now on it is the journal. `restored` stays until the controller has recorded that it was put back.
// Done to a draft: a log beside the file itself is never the copy's own.
absl::Status TakeOver(const std::string& path, int64_t last) {
  SIDING_ASSIGN_OR_RETURN(const std::string draft, StartDraft(path));
  std::error_code error;
  std::filesystem::copy_file(path, draft, std::filesystem::copy_options::overwrite_existing, error);
  if (error) return absl::UnavailableError(absl::StrCat("copy ", path, " to ", draft, ": ", error.message()));
  SIDING_RETURN_IF_ERROR(MarkRestored(draft, last));
  SIDING_RETURN_IF_ERROR(PutInPlace(draft, path));
  spdlog::warn("{} is a copy that was put back: it ends with event {}", path, last);
  return absl::OkStatus();
}

// The log of either mode that holds something; empty: there is none.
std::string LogBeside(const std::string& path) {
  for (const char* suffix : {"-wal", "-journal"}) {
    if (SizeOf(path + suffix) > 0) return path + suffix;
  }
  return "";
}

}  // namespace

absl::Status PrepareJournalFile(const std::string& path) {
  const int64_t size = SizeOf(path);
  const std::string log = LogBeside(path);
  if (size < 0 && !log.empty()) {
    return absl::DataLossError(absl::StrCat(
        path, " is missing, but its log ", log,
        " is there. Nothing has been changed. Put back a copy of it and remove the log; to begin without "
        "any job, remove the log only"));
  }
  if (size < 0) return MakeJournalFile(path);
  if (size == 0) return Damaged(path, "it is empty");
  const int64_t copied = CopiedUpTo(path);
  if (copied == 0) return absl::OkStatus();
  if (!log.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is a copy that was put back, and ", log,
                     " beside it is the log of another journal. Nothing has been changed. Remove ", log));
  }
  return TakeOver(path, copied);
}

}  // namespace siding
