// The files a job had open when it was dumped: recorded with the image, and put right before a restore.
//
// A program that appends has, after an interrupted stretch, written lines that its restored self will write
// again: its files are cut back to the recorded length. Any other file must be as it was; if not, a restore
// would continue from a state that never existed, so it fails and names the file. One that is only read is
// as it was if it has the same contents, whatever its times say.
//
// A log may be rotated in between: renamed, and created again or not, or truncated. Where its user says so, a
// file that was opened with O_APPEND may be one of these: the program then appends to what is there.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/checkpoint/file_contents.h"
#include "agent/os/held.h"
#include "common/units.h"

namespace siding {

struct OpenFile {
  std::string path;
  bool append = false;  // opened with O_APPEND, or for writing and at its end
  int64_t size = 0;
  int64_t mtime_ns = 0;
  bool always_appends = false;  // opened with O_APPEND, wherever it is open for writing
  uint64_t inode = 0;           // 0: an older image did not say so
  uint32_t mode = 0;            // permissions; 0: the same
  std::string content;          // checksum, where no process may write to it; empty: not known
  bool operator==(const OpenFile&) const = default;
};

// Regular files of real file systems that some process of the tree has open, or mapped shared and writable;
// sorted by path. Deleted ones are left out, and those of `in_image`: they are part of the image. What is in
// those that are only read is asked of `contents`, of kMostRead and for kMostReading together. The processes
// must be frozen.
inline constexpr Bytes kMostRead{256 << 20};  // a tenth of a second, from memory
inline constexpr Duration kMostReading = std::chrono::milliseconds(200);
absl::StatusOr<std::vector<OpenFile>> RecordOpenFiles(pid_t root, FileContents& contents,
                                                      const FileIds& in_image = {});

// A JSON array, the form kept in the image's metadata.
std::string OpenFilesToJson(const std::vector<OpenFile>& files);
// kDataLoss if it is none.
absl::StatusOr<std::vector<OpenFile>> OpenFilesFromJson(const std::string& json);

// What else the processes need to be there: their programs, libraries and working folders. Paths, each with
// what it is: "program", "working folder". The processes must be frozen.
std::map<std::string, std::string> RecordHeld(pid_t root, const FileIds& in_image = {});
std::string HeldToJson(const std::map<std::string, std::string>& held);
absl::StatusOr<std::map<std::string, std::string>> HeldFromJson(const std::string& json);
// An error that names the first that is missing, or that the calling thread's user cannot reach.
absl::Status CheckIsThere(const std::map<std::string, std::string>& held);

// What is to be done for one file, given what is there now (`exists` false: nothing).
struct FileState {
  bool exists = false;
  bool regular = false;
  int64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  std::string content;  // checksum; needed where NeedsContent() says so
};
// Its times alone do not tell whether it is as it was.
bool NeedsContent(const OpenFile& recorded, const FileState& now);
enum class FileRemedy { kNone, kCutBack, kAppend };
// kAppend: it was rotated, which it may have been (`may_be_rotated`): it is gone, shorter, or another
// file. kFailedPrecondition, naming the file and the change, if it cannot be put right.
absl::StatusOr<FileRemedy> JudgeFile(const OpenFile& recorded, const FileState& now,
                                     bool may_be_rotated = false);

struct FilesPutBack {
  std::vector<std::string> notes;  // for the job's owner, a line for each file that was changed
  bool rotated = false;            // one of them was: CRIU is not to compare its length and permissions
};

// Compares all files, and only if none is wrong cuts back those that grew, and creates logs that are gone.
// Runs with the caller's effective user, follows no symbolic link in the last place.
absl::StatusOr<FilesPutBack> PutFilesBack(const std::vector<OpenFile>& files, bool may_be_rotated = false);

}  // namespace siding
