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

#include "agent/launch/held.h"
#include "agent/launch/processes.h"
#include "common/files.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace siding {
namespace {

using Record = std::map<std::string, OpenFile>;

int64_t Nanoseconds(const timespec& t) { return t.tv_sec * 1'000'000'000LL + t.tv_nsec; }

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
      return false;
    default:
      return true;
  }
}

// `link` is /proc/PID/fd/N or /proc/PID/map_files/A-B: it leads to the file itself, whatever its name now
// means.
void Add(Record& record, const std::string& link, bool append_flag, bool writable, int64_t position) {
  struct stat info {};
  if (stat(link.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink == 0) return;
  const std::string target = TargetOf(link);
  if (target.empty() || target[0] != '/' || !OnRealFilesystem(link)) return;
  OpenFile file;
  file.path = target;
  file.append = append_flag || (writable && position == info.st_size);
  file.size = info.st_size;
  file.mtime_ns = Nanoseconds(info.st_mtim);
  auto [it, added] = record.emplace(file.path, file);
  if (!added) it->second.append |= file.append;
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
    Add(record, process + "/fd/" + name, writable && (flags & O_APPEND) != 0, writable, position);
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
      Add(record, process + "/map_files/" + range, false, false, -1);
    }
    line = std::strchr(line, '\n');
    if (line != nullptr) ++line;
  }
}

}  // namespace

absl::StatusOr<std::vector<OpenFile>> RecordOpenFiles(pid_t root) {
  Record record;
  const std::vector<pid_t> tree = ProcessTree(root);
  if (tree.empty()) return absl::NotFoundError(absl::StrCat("process ", root, " is gone"));
  for (pid_t pid : tree) {
    const std::string process = "/proc/" + std::to_string(pid);
    AddDescriptors(record, process);
    AddMappings(record, process);
  }
  std::vector<OpenFile> files;
  for (auto& [path, file] : record) files.push_back(std::move(file));
  return files;
}

std::string OpenFilesToJson(const std::vector<OpenFile>& files) {
  nlohmann::json array = nlohmann::json::array();
  for (const OpenFile& file : files) {
    array.push_back(
        {{"path", file.path}, {"append", file.append}, {"size", file.size}, {"mtime_ns", file.mtime_ns}});
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
      files.push_back({item.at("path"), item.at("append"), size, mtime});
    }
    return files;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("the image's list of open files: ", error.what()));
  }
}

absl::StatusOr<FileRemedy> JudgeFile(const OpenFile& recorded, const FileState& now) {
  const auto changed = [&](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("file ", recorded.path, " ", what, " since the checkpoint"));
  };
  if (!now.exists) return changed("has vanished");
  if (!now.regular) return changed("has been replaced by something that is no regular file");
  if (now.size < recorded.size || (!recorded.append && now.size != recorded.size)) {
    return changed(absl::StrCat("has changed size (", recorded.size, " -> ", now.size, " bytes)"));
  }
  if (!recorded.append && now.mtime_ns != recorded.mtime_ns) return changed("has been modified");
  return now.size > recorded.size ? FileRemedy::kCutBack : FileRemedy::kNone;
}

absl::StatusOr<std::vector<std::string>> PutFilesBack(const std::vector<OpenFile>& files) {
  std::vector<OpenFile> grown;
  for (const OpenFile& file : files) {
    FileState now;
    struct stat info {};
    if (lstat(file.path.c_str(), &info) == 0) {
      now = {true, S_ISREG(info.st_mode), info.st_size, Nanoseconds(info.st_mtim)};
    } else if (errno != ENOENT && errno != ENOTDIR) {
      return ErrnoError(errno, file.path);
    }
    SIDING_ASSIGN_OR_RETURN(const FileRemedy remedy, JudgeFile(file, now));
    if (remedy == FileRemedy::kCutBack) grown.push_back(file);
  }
  std::vector<std::string> notes;
  for (const OpenFile& file : grown) {
    UniqueFd fd(open(file.path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return ErrnoError(errno, "cut back " + file.path);
    struct stat info {};
    if (fstat(fd.get(), &info) != 0) return ErrnoError(errno, file.path);
    if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(file.path + " is no regular file");
    if (ftruncate(fd.get(), file.size) != 0) return ErrnoError(errno, "cut back " + file.path);
    notes.push_back(absl::StrCat(file.path, " cut back from ", info.st_size, " to ", file.size, " bytes"));
  }
  return notes;
}

}  // namespace siding
