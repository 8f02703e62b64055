// The files a job had open when it was dumped: recorded with the image, and put right before a restore.
//
// A program that appends has, after an interrupted stretch, written lines that its restored self will write
// again: its files are cut back to the recorded length. Any other file must be as it was; if not, a restore
// would go on from a state that never existed, so it fails and names the file.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

struct OpenFile {
  std::string path;
  bool append = false;  // opened with O_APPEND, or for writing and at its end
  int64_t size = 0;
  int64_t mtime_ns = 0;
  bool operator==(const OpenFile&) const = default;
};

// Regular files of real file systems that some process of the tree has open, or mapped shared and writable;
// sorted by path. Deleted ones are left out: they are part of the image. The processes must be frozen.
absl::StatusOr<std::vector<OpenFile>> RecordOpenFiles(pid_t root);

// A JSON array, the form kept in the image's metadata.
std::string OpenFilesToJson(const std::vector<OpenFile>& files);
// kDataLoss if it is none.
absl::StatusOr<std::vector<OpenFile>> OpenFilesFromJson(const std::string& json);

// What is to be done for one file, given what is there now (`exists` false: nothing).
struct FileState {
  bool exists = false;
  bool regular = false;
  int64_t size = 0;
  int64_t mtime_ns = 0;
};
enum class FileRemedy { kNone, kCutBack };
// kFailedPrecondition, naming the file and the change, if it cannot be put right.
absl::StatusOr<FileRemedy> JudgeFile(const OpenFile& recorded, const FileState& now);

// Compares all files, and only if none is wrong cuts back those that grew. Returns a line for each of these.
// Runs with the caller's effective user, follows no symbolic link in the last place.
absl::StatusOr<std::vector<std::string>> PutFilesBack(const std::vector<OpenFile>& files);

}  // namespace siding
