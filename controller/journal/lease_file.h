// The file beside a journal in which its holder says that it lives. Those that wait for the journal look
// here, and leave the database alone, so that nothing they do (and no death of theirs) can be in the holder's
// way.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "controller/journal/lease_record.h"

namespace siding {

// Thread-safe, but for Lock(). Works over NFS: every reading opens the file again.
class LeaseFile {
 public:
  // Made if it is not there.
  static absl::StatusOr<LeaseFile> Open(const std::string& path);

  absl::StatusOr<LeaseRecord> Read() const;
  // Replaces what is there; other hosts see it when this returns.
  absl::Status Write(const LeaseRecord& record);

  // Byte `epoch` of the file is locked for as long as the process that took this epoch lives and this object
  // does. kFailedPrecondition if another one holds it.
  absl::Status Lock(int64_t epoch);
  void Unlock(int64_t epoch);
  // Whether another process does.
  bool IsLocked(int64_t epoch) const;
  // Whether process `pid` has this very file open.
  bool IsOpenIn(int pid) const;

 private:
  LeaseFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  int SetLock(int command, int64_t epoch, short& type) const;

  std::string path_;
  UniqueFd fd_;
};

}  // namespace siding
