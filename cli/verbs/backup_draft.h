// A backup while it is being written.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/files.h"

namespace siding::cli {

// FILE.part, locked: it is removed unless it gets its name. Not thread-safe.
class BackupDraft {
 public:
  explicit BackupDraft(const std::string& file);
  ~BackupDraft();
  BackupDraft(const BackupDraft&) = delete;
  BackupDraft& operator=(const BackupDraft&) = delete;

  // The draft of a backup that died is taken over. kFailedPrecondition if another backup writes it.
  absl::Status Begin();
  absl::Status Write(const std::string& bytes);
  const std::string& path() const { return path_; }
  absl::Status Name(const std::string& file);

 private:
  void Open();

  const std::string path_;
  UniqueFd fd_;
  bool mine_ = false;
};

}  // namespace siding::cli
