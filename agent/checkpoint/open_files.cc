#include "agent/checkpoint/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/status.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"

namespace siding {
namespace {

constexpr mode_t kPermissions = 07777;

struct Recorded {
  OpenFile file;
  std::string link;
  struct stat info;
  bool others = false;   // not all that have it open append to it
  bool written = false;  // one of them may write
};
class Record {
 public:
  explicit Record(const FileIds& in_image) : in_image_(in_image) {}

  // `link` is /proc/PID/fd/N or /proc/PID/map_files/A-B: it leads to the file itself, whatever its name now
  // means.
  void Add(const std::string& link, bool append_flag, bool writable, int64_t position);
  std::vector<OpenFile> Files(FileContents& contents) const;

 private:
  const FileIds& in_image_;
  const UniqueFd root_{open("/", O_PATH | O_CLOEXEC)};
  std::map<std::string, Recorded> by_path_;
};

// /proc and its kind make up their files on the spot.
bool OnRealFilesystem(const std::string& path) {
  struct statfs fs {};
  if (statfs(path.c_str(), &fs) != 0) return false;
  switch (static_cast<unsigned long>(fs.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case kAioRingMagic:
    case kMessageQueueMagic:
      return false;
    default:
      return true;
  }
}

void Record::Add(const std::string& link, bool append_flag, bool writable, int64_t position) {
  struct stat info {};
  if (stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink == 0) return;
  if (in_image_.contains(IdOf(info))) return;
  const std::string target = LivingName(root_.get(), TargetOf(link), info);
  if (target.empty() || target[0] != '/' || !OnRealFilesystem(link)) return;
  OpenFile file;
  file.path = target;
  file.append = append_flag || (writable && position == info.st_size);
  file.size = info.st_size;
  file.mtime_ns = Nanoseconds(info.st_mtim);
  file.inode = info.st_ino;
  file.mode = info.st_mode & kPermissions;
  Recorded& recorded = by_path_.try_emplace(file.path, Recorded{file, link, info}).first->second;
  recorded.file.append |= file.append;
  recorded.others |= !append_flag;
  recorded.written |= writable;
}

std::vector<OpenFile> Record::Files(FileContents& contents) const {
  std::vector<OpenFile> files;
  ReadBudget budget{kMostRead, std::chrono::steady_clock::now() + kMostReading};
  for (const auto& [path, recorded] : by_path_) {
    files.push_back(recorded.file);
    files.back().always_appends = !recorded.others;
    if (!recorded.written) files.back().content = contents.Of(recorded.link, recorded.info, budget);
  }
  return files;
}

template <class Visit>
void ForEachEntry(const std::string& folder, const Visit& visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return;
  while (const dirent* entry = readdir(dir.get())) {
    if (entry->d_name[0] != '.') visit(std::string(entry->d_name));
  }
}

void AddDescriptors(Record& record, const std::string& process) {
  ForEachEntry(process + "/fd", [&](const std::string& name) {
    auto info = ReadFile(process + "/fdinfo/" + name);
    if (!info.ok()) return;
    long long position = 0;
    int flags = 0;
    if (std::sscanf(info->c_str(), "pos: %lld flags: %o", &position, &flags) != 2) return;
    const bool writable = (flags & O_ACCMODE) != O_RDONLY;
    record.Add(process + "/fd/" + name, writable && (flags & O_APPEND) != 0, writable, position);
  });
}

void AddMappings(Record& record, const std::string& process) {
  auto maps = ReadFile(process + "/maps");
  if (!maps.ok()) return;
  for (const char* line = maps->c_str(); line != nullptr && *line != '\0';) {
    unsigned long begin = 0, end = 0;
    char access[8];
    // Only shared writable ones: private ones are copied, and for read-only ones CRIU itself compares.
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, access) == 3 && access[1] == 'w' && access[3] == 's') {
      // Not as it is written in maps, which fills small addresses up with zeros.
      const std::string range = absl::StrCat(absl::Hex(begin), "-", absl::Hex(end));
      record.Add(process + "/map_files/" + range, false, true, -1);
    }
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
}

}  // namespace

absl::StatusOr<std::vector<OpenFile>> RecordOpenFiles(pid_t root, FileContents& contents,
                                                      const FileIds& in_image) {
  Record record(in_image);
  const std::vector<pid_t> tree = ProcessTree(root);
  if (tree.empty()) return absl::NotFoundError(absl::StrCat("process ", root, " is gone"));
  for (pid_t pid : tree) {
    const std::string process = "/proc/" + std::to_string(pid);
    AddDescriptors(record, process);
    AddMappings(record, process);
  }
  return record.Files(contents);
}

std::string OpenFilesToJson(const std::vector<OpenFile>& files) {
  nlohmann::json array = nlohmann::json::array();
  for (const OpenFile& file : files) {
    array.push_back({{"path", file.path},
                     {"append", file.append},
                     {"size", file.size},
                     {"mtime_ns", file.mtime_ns},
                     {"always_appends", file.always_appends},
                     {"inode", file.inode},
                     {"mode", file.mode}});
    if (!file.content.empty()) array.back()["content"] = file.content;
  }
  // A name need not be UTF-8. Replaced, it is not found at the restore, which then says so.
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::vector<OpenFile>> OpenFilesFromJson(const std::string& json) {
  try {
    std::vector<OpenFile> files;
    for (const auto& item : nlohmann::json::parse(json)) {
      const auto &size = item.at("size"), &mtime = item.at("mtime_ns");
      // Of any other number the library would make some integer.
      if (!size.is_number_integer() || !mtime.is_number_integer())
        return absl::DataLossError("the image's list of open files: expected whole numbers");
      // Older images do not have these.
      const auto inode = item.value("inode", nlohmann::json(0U)),
                 mode = item.value("mode", nlohmann::json(0U));
      if (!inode.is_number_unsigned() || !mode.is_number_unsigned() || mode > kPermissions)
        return absl::DataLossError("the image's list of open files: expected inodes and permissions");
      files.push_back({item.at("path"), item.at("append"), size, mtime, item.value("always_appends", false),
                       inode, mode, item.value("content", "")});
    }
    return files;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("the image's list of open files: ", error.what()));
  }
}

std::map<std::string, std::string> RecordHeld(pid_t root, const FileIds& in_image) {
  const UniqueFd top(open("/", O_PATH | O_CLOEXEC));
  std::map<std::string, std::string> paths;
  ForEachHeld(root, [&](const Held& held) {
    if (held.how.rfind("descriptor", 0) == 0) return;
    struct stat info {};
    if (stat(held.link.c_str(), &info) != 0 || info.st_nlink == 0 || in_image.contains(IdOf(info))) return;
    const std::string target = LivingName(top.get(), TargetOf(held.link), info);
    if (target.empty() || target[0] != '/' || !OnRealFilesystem(held.link)) return;
    // By a name that leads there, and that can be written down: another says nothing.
    struct stat named {};
    if (FindNotUtf8(target) || stat(target.c_str(), &named) != 0 || named.st_dev != info.st_dev ||
        named.st_ino != info.st_ino)
      return;
    const std::string how = held.how.rfind("mapping", 0) == 0 ? "library or mapped file" : held.how;
    std::string& is = paths[target];
    if (is.empty() || how == "program") is = how;
  });
  return paths;
}

std::string HeldToJson(const std::map<std::string, std::string>& held) {
  return nlohmann::json(held).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::map<std::string, std::string>> HeldFromJson(const std::string& json) {
  try {
    return nlohmann::json::parse(json).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("the image's list of what its processes need: ", error.what()));
  }
}

absl::Status CheckIsThere(const std::map<std::string, std::string>& held) {
  for (const auto& [path, how] : held) {
    const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!fd.valid()) return ErrnoError(errno, absl::StrCat(how, " ", path, " is not there any more"));
  }
  return absl::OkStatus();
}

bool NeedsContent(const OpenFile& recorded, const FileState& now) {
  return now.exists && now.regular && !recorded.append && !recorded.content.empty() &&
         now.size == recorded.size && now.mtime_ns != recorded.mtime_ns;
}

absl::StatusOr<FileRemedy> JudgeFile(const OpenFile& recorded, const FileState& now, bool may_be_rotated) {
  const auto changed = [&](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("file ", recorded.path, " ", what, " since the checkpoint"));
  };
  const bool other = now.exists && recorded.inode != 0 && now.inode != recorded.inode;
  if (now.exists && !now.regular) return changed("has been replaced by something that is no regular file");
  if (may_be_rotated && recorded.always_appends && (!now.exists || other || now.size < recorded.size))
    return FileRemedy::kAppend;
  if (!now.exists) return changed("has vanished");
  if (now.size < recorded.size || (!recorded.append && now.size != recorded.size)) {
    return changed(absl::StrCat("has changed size (", recorded.size, " -> ", now.size, " bytes)"));
  }
  // What another file has beyond that length is not the job's to cut off.
  if (other && now.size > recorded.size)
    return changed(
        absl::StrCat("has been replaced by a longer one (", recorded.size, " -> ", now.size, " bytes)"));
  if (NeedsContent(recorded, now)) {
    if (now.content != recorded.content) return changed("has got other contents");
  } else if (!recorded.append && now.mtime_ns != recorded.mtime_ns) {
    return changed("has been modified");
  }
  return now.size > recorded.size ? FileRemedy::kCutBack : FileRemedy::kNone;
}

namespace {

// A file that is to be changed, with its length.
struct Changed {
  UniqueFd fd;
  int64_t size = 0;
};
absl::StatusOr<Changed> OpenToChange(const OpenFile& file, int flags, const std::string& what) {
  const mode_t mode = file.mode == 0 ? 0644 : file.mode;
  Changed changed;
  changed.fd.Reset(open(file.path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, mode));
  if (!changed.fd.valid()) return ErrnoError(errno, what);
  struct stat info {};
  if (fstat(changed.fd.get(), &info) != 0) return ErrnoError(errno, file.path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(file.path + " is no regular file");
  changed.size = info.st_size;
  return changed;
}

absl::Status CutBack(const OpenFile& file, FilesPutBack& back) {
  const std::string what = "cut back " + file.path;
  SIDING_ASSIGN_OR_RETURN(const Changed changed, OpenToChange(file, 0, what));
  if (ftruncate(changed.fd.get(), file.size) != 0) return ErrnoError(errno, what);
  back.notes.push_back(absl::StrCat(file.path, " cut back from ", changed.size, " to ", file.size, " bytes"));
  return absl::OkStatus();
}

// Created again if it is not there, as the program would have created it.
absl::Status AppendFromHere(const OpenFile& file, FilesPutBack& back) {
  SIDING_RETURN_IF_ERROR(
      OpenToChange(file, O_APPEND | O_CREAT, "open " + file.path + " to append to it").status());
  back.rotated = true;
  back.notes.push_back(absl::StrCat(file.path,
                                    " has been rotated or truncated since the checkpoint: the job appends to "
                                    "it as it is now"));
  return absl::OkStatus();
}

// With the rights of the user, who may have lost them.
absl::Status MayAppend(const OpenFile& file) {
  const UniqueFd fd(open(file.path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  return fd.valid() ? absl::OkStatus() : ErrnoError(errno, "append to " + file.path);
}

}  // namespace

absl::StatusOr<FilesPutBack> PutFilesBack(const std::vector<OpenFile>& files, bool may_be_rotated) {
  std::vector<std::pair<const OpenFile*, FileRemedy>> wrong;
  for (const OpenFile& file : files) {
    FileState now;
    struct stat info {};
    if (lstat(file.path.c_str(), &info) == 0) {
      now = {true, S_ISREG(info.st_mode), info.st_size, Nanoseconds(info.st_mtim), info.st_ino, ""};
      if (NeedsContent(file, now)) {
        SIDING_ASSIGN_OR_RETURN(now.content, ContentOf(file.path, now.size));
      }
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return ErrnoError(errno, file.path);
    }
    SIDING_ASSIGN_OR_RETURN(const FileRemedy remedy, JudgeFile(file, now, may_be_rotated));
    if (remedy != FileRemedy::kNone) wrong.emplace_back(&file, remedy);
    if (remedy == FileRemedy::kNone && file.always_appends) SIDING_RETURN_IF_ERROR(MayAppend(file));
  }
  FilesPutBack back;
  for (const auto& [file, remedy] : wrong)
    SIDING_RETURN_IF_ERROR(remedy == FileRemedy::kCutBack ? CutBack(*file, back)
                                                          : AppendFromHere(*file, back));
  return back;
}

}  // namespace siding
