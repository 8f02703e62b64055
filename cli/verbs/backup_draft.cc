#include "cli/verbs/backup_draft.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/status.h"
#include "controller/journal/copy.h"

namespace siding::cli {

BackupDraft::BackupDraft(const std::string& file) : path_(file + ".part") { Open(); }

BackupDraft::~BackupDraft() {
  if (mine_) unlink(path_.c_str());
}

void BackupDraft::Open() { fd_.Reset(open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)); }

absl::Status BackupDraft::Begin() {
  for (;; Open()) {
    if (!fd_.valid()) return ErrnoError(errno, absl::StrCat("open ", path_));
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0)
      return absl::FailedPreconditionError(absl::StrCat(path_, " is being written by another backup"));
    // Between our open and our lock another one may have been finished: then this is its file, not a draft.
    if (IsNamed(fd_.get(), path_)) break;
  }
  mine_ = true;
  if (fchmod(fd_.get(), 0600) != 0) return ErrnoError(errno, absl::StrCat("chmod ", path_));
  if (ftruncate(fd_.get(), 0) != 0) return ErrnoError(errno, absl::StrCat("empty ", path_));
  return absl::OkStatus();
}

absl::Status BackupDraft::Write(const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = write(fd_.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return ErrnoError(errno, absl::StrCat("write ", path_));
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  return absl::OkStatus();
}

absl::Status BackupDraft::Name(const std::string& file) {
  SIDING_RETURN_IF_ERROR(PutInPlace(path_, file));
  mine_ = false;
  return absl::OkStatus();
}

}  // namespace siding::cli
