#include "agent/checkpoint/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/os/held.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"

namespace siding {
namespace {

constexpr char kFolder[] = "/dev/shm/";
constexpr char kMarkName[] = "trusted.siding.task";
constexpr char kImagePrefix[] = "siding-shm-";
constexpr mode_t kPermissions = 0777;
constexpr size_t kBlock = 1 << 20;

std::string PathOf(const SharedMemoryFile& file) { return kFolder + file.name; }

bool IsName(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != ".." &&
         name.size() <= NAME_MAX;
}

// Its name in /dev/shm, if the file behind the link is one of the user's there. With two names it is not told
// which of them whose processes need.
std::string NameInFolder(const Held& held, int root, const Account& user, struct stat& info) {
  const UniqueFd file(open(held.link.c_str(), O_PATH | O_CLOEXEC));
  struct statfs fs {};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1 ||
      info.st_uid != user.uid || fstatfs(file.get(), &fs) != 0 || fs.f_type != TMPFS_MAGIC)
    return "";
  const std::string path = LivingName(root, TargetOf(held.link), info);
  if (!absl::StartsWith(path, kFolder)) return "";
  const std::string name = path.substr(sizeof kFolder - 1);
  struct stat named {};
  // In the manifest, which is JSON, there is no place for bytes that are no text.
  const bool leads_there =
      IsName(name) && !FindNotUtf8(name) && lstat(path.c_str(), &named) == 0 && IdOf(named) == IdOf(info);
  return leads_there ? name : "";
}

// To open such a file for reading would break the lease: its holder gets a signal, which may end it.
bool HasWriteLease(const Held& held) {
  const std::string info = absl::StrReplaceAll(held.link, {{"/fd/", "/fdinfo/"}});
  if (info == held.link) return false;
  for (const absl::string_view line : absl::StrSplit(ReadFile(info).value_or(""), '\n'))
    if (absl::StrContains(line, "LEASE") && absl::StrContains(line, "WRITE")) return true;
  return false;
}

bool IsZero(const char* data, size_t size) {
  return size == 0 || (data[0] == 0 && std::memcmp(data, data + 1, size - 1) == 0);
}

// Without what is empty, which takes no room in either place.
absl::Status Copy(int from, int to, int64_t size, const std::string& what, const std::atomic<bool>* abandon) {
  if (ftruncate(to, 0) != 0 || ftruncate(to, size) != 0) return ErrnoError(errno, what);
  const auto block = std::make_unique<char[]>(kBlock);
  for (int64_t at = 0; at < size;) {
    if (abandon != nullptr && *abandon) return absl::CancelledError(what + ": given up");
    at = lseek(from, at, SEEK_DATA);
    if (at < 0) return errno == ENXIO ? absl::OkStatus() : ErrnoError(errno, what);
    const ssize_t got = pread(from, block.get(), std::min<int64_t>(kBlock, size - at), at);
    if (got < 0) return ErrnoError(errno, what);
    if (got == 0) return absl::OkStatus();
    for (ssize_t put = IsZero(block.get(), got) ? got : 0; put < got;) {
      const ssize_t wrote = pwrite(to, block.get() + put, got - put, at + put);
      if (wrote < 0) return ErrnoError(errno, what);
      put += wrote;
    }
    at += got;
  }
  return absl::OkStatus();
}

bool HasMark(int fd, const std::string& mark) {
  char value[64];
  const ssize_t size = fgetxattr(fd, kMarkName, value, sizeof value);
  return size >= 0 && mark == std::string(value, static_cast<size_t>(size));
}

// The kernel gives a lease to write on a file that is open nowhere else, nor mapped. Given back at once.
bool NobodyElseHas(int fd) {
  // Whoever opens it in between is told by a signal, which otherwise would end this process.
  if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;
  return fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

struct Opened {
  UniqueFd file;
  bool made = false;  // it has no name yet
};

absl::Status NotTheJobs(const SharedMemoryFile& file) {
  return absl::FailedPreconditionError(
      absl::StrCat(PathOf(file), " is not what this job had; it is needed for the job's shared memory"));
}

// To read and write. Its owner need not have these rights: a file is often made with none to write, and the
// job had it open since. kNotFound if there is none.
absl::StatusOr<UniqueFd> OpenExisting(const SharedMemoryFile& file, const Account& user) {
  UniqueFd there;
  {
    const FilesAsUser as_user(user);
    if (!as_user.ok()) return absl::PermissionDeniedError("cannot act as the job's user");
    there.Reset(open(PathOf(file).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!there.valid()) return ErrnoError(errno, "open " + PathOf(file));
  }
  struct stat info {};
  if (fstat(there.get(), &info) != 0) return ErrnoError(errno, PathOf(file));
  if (!S_ISREG(info.st_mode) || info.st_uid != user.uid) return NotTheJobs(file);
  // That very file, whatever has the name by now.
  UniqueFd fd(open(absl::StrCat("/proc/self/fd/", there.get()).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + PathOf(file));
  return fd;
}

// A new one gets its name when it is complete: one without its mark would be in the way of the next restore.
absl::StatusOr<Opened> OpenOrMake(const SharedMemoryFile& file, const Account& user) {
  auto existing = OpenExisting(file, user);
  if (existing.ok()) return Opened{*std::move(existing), false};
  if (!absl::IsNotFound(existing.status())) return existing.status();
  const FilesAsUser as_user(user);
  if (!as_user.ok()) return absl::PermissionDeniedError("cannot act as the job's user");
  UniqueFd made(open(kFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!made.valid()) return ErrnoError(errno, "make " + PathOf(file));
  return Opened{std::move(made), true};
}

absl::Status GiveName(const Opened& opened, const SharedMemoryFile& file, const Account& user) {
  const FilesAsUser as_user(user);
  if (!as_user.ok()) return absl::PermissionDeniedError("cannot act as the job's user");
  const std::string link = absl::StrCat("/proc/self/fd/", opened.file.get());
  if (linkat(AT_FDCWD, link.c_str(), AT_FDCWD, PathOf(file).c_str(), AT_SYMLINK_FOLLOW) == 0)
    return absl::OkStatus();
  return errno == EEXIST ? NotTheJobs(file) : ErrnoError(errno, "make " + PathOf(file));
}

// OK: it may be written over.
absl::Status Judge(const SharedMemoryFile& file, const Opened& opened, const std::string& mark) {
  if (!opened.made && !HasMark(opened.file.get(), mark)) return NotTheJobs(file);
  if (!NobodyElseHas(opened.file.get()))
    return absl::FailedPreconditionError(
        absl::StrCat(PathOf(file), ", the job's shared memory, is open in another program"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SharedMemoryFile>> SaveSharedMemory(pid_t init, const Account& user,
                                                               const std::string& mark,
                                                               const std::string& image_folder,
                                                               const std::atomic<bool>& abandon) {
  struct Found {
    SharedMemoryFile file;
    std::string link;
    bool written = false, leased = false;
  };
  const UniqueFd root(open("/", O_PATH | O_CLOEXEC));
  std::map<FileId, Found> found;
  ForEachHeld(init, [&](const Held& held) {
    struct stat info {};
    const std::string name = NameInFolder(held, root.get(), user, info);
    if (name.empty()) return;
    const FileId id = IdOf(info);
    Found& one = found[id];
    one.file = {name, "", info.st_size, info.st_mode & kPermissions, id};
    one.link = held.link;
    one.written |= (held.access & W_OK) != 0;
    one.leased |= HasWriteLease(held);
  });
  struct statfs fs {};
  if (statfs(kFolder, &fs) != 0) return ErrnoError(errno, kFolder);
  // With holes, a file can be far larger than what is there. All of it is hashed, and encrypted, in the
  // image.
  const auto most = static_cast<uint64_t>(fs.f_blocks) * static_cast<uint64_t>(fs.f_bsize);
  uint64_t total = 0;
  std::vector<SharedMemoryFile> files;
  for (auto& [id, one] : found) {
    if (!one.written) continue;
    const auto has_lease =
        absl::FailedPreconditionError(PathOf(one.file) + ", the job's shared memory, has a lease");
    if (one.leased) return has_lease;
    // A lease of a process outside of the job is not waited for: this one is frozen meanwhile.
    const UniqueFd from(open(one.link.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!from.valid() && errno == EWOULDBLOCK) return has_lease;
    struct stat info {};
    if (!from.valid() || fstat(from.get(), &info) != 0) return ErrnoError(errno, PathOf(one.file));
    if (IdOf(info) != id) return absl::InternalError(PathOf(one.file) + " was replaced while it was saved");
    if (fsetxattr(from.get(), kMarkName, mark.data(), mark.size(), 0) != 0) continue;
    total += static_cast<uint64_t>(one.file.size);
    if (most > 0 && total > most) {
      return absl::FailedPreconditionError(absl::StrCat(PathOf(one.file), " has ", one.file.size,
                                                        " bytes; the job's shared memory must fit in ",
                                                        kFolder, ", which has ", most));
    }
    one.file.image = absl::StrCat(kImagePrefix, files.size(), ".img");
    const std::string path = image_folder + "/" + one.file.image;
    const UniqueFd to(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to.valid()) return ErrnoError(errno, path);
    SIDING_RETURN_IF_ERROR(Copy(from.get(), to.get(), one.file.size,
                                absl::StrCat("copy ", PathOf(one.file), " to ", path), &abandon));
    files.push_back(one.file);
  }
  return files;
}

FileIds FilesInOwnSharedMemory(pid_t init) {
  struct stat own {
  }, nodes{};
  if (stat(absl::StrCat("/proc/", init, "/root", kFolder).c_str(), &own) != 0 || stat(kFolder, &nodes) != 0 ||
      own.st_dev == nodes.st_dev)
    return {};
  FileIds files;
  ForEachHeld(init, [&](const Held& held) {
    struct stat info {};
    if (stat(held.link.c_str(), &info) == 0 && info.st_dev == own.st_dev) files.insert(IdOf(info));
  });
  return files;
}

std::string SharedMemoryToJson(const std::vector<SharedMemoryFile>& files) {
  nlohmann::json array = nlohmann::json::array();
  for (const SharedMemoryFile& file : files)
    array.push_back({{"name", file.name}, {"image", file.image}, {"size", file.size}, {"mode", file.mode}});
  return array.dump();
}

absl::StatusOr<std::vector<SharedMemoryFile>> SharedMemoryFromJson(const std::string& json) {
  constexpr char kWhat[] = "the image's list of shared memory";
  try {
    std::vector<SharedMemoryFile> files;
    for (const auto& item : nlohmann::json::parse(json)) {
      const auto &size = item.at("size"), &mode = item.at("mode");
      if (!size.is_number_integer() || size < 0 || !mode.is_number_unsigned() || mode > kPermissions)
        return absl::DataLossError(absl::StrCat(kWhat, ": expected sizes and permissions"));
      SharedMemoryFile file{item.at("name"), item.at("image"), size, mode, {}};
      if (!IsName(file.name) || !IsName(file.image) || !absl::StartsWith(file.image, kImagePrefix))
        return absl::DataLossError(absl::StrCat(kWhat, ": expected names of files"));
      files.push_back(std::move(file));
    }
    return files;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat(kWhat, ": ", error.what()));
  }
}

absl::Status PutSharedMemoryBack(const std::vector<SharedMemoryFile>& files, const std::string& image_folder,
                                 const Account& user, const std::string& mark) {
  std::vector<Opened> opened;
  absl::Status status;
  for (const SharedMemoryFile& file : files) {
    auto one = OpenOrMake(file, user);
    if (!one.ok()) {
      status = one.status();
      break;
    }
    opened.push_back(*std::move(one));
    status = FaultAt<"shim.shared: a file for the task's shared memory is open, and has no mark yet">();
    if (status.ok()) status = Judge(file, opened.back(), mark);
    if (status.ok() && fsetxattr(opened.back().file.get(), kMarkName, mark.data(), mark.size(), 0) != 0)
      status = ErrnoError(errno, "mark " + PathOf(file));
    if (!status.ok()) break;
  }
  for (size_t i = 0; status.ok() && i < files.size(); ++i) {
    const std::string path = image_folder + "/" + files[i].image;
    const UniqueFd from(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const int to = opened[i].file.get();
    status = from.valid() ? Copy(from.get(), to, files[i].size, "write " + PathOf(files[i]), nullptr)
                          : ErrnoError(errno, path);
    if (status.ok() && fchmod(to, files[i].mode) != 0)
      status = ErrnoError(errno, "chmod " + PathOf(files[i]));
  }
  size_t named = 0;
  for (; status.ok() && named < files.size(); ++named)
    if (opened[named].made) status = GiveName(opened[named], files[named], user);
  if (status.ok()) return status;
  // As before: there was nothing. The last one has not got its name.
  const FilesAsUser as_user(user);
  for (size_t i = 0; as_user.ok() && i + 1 < named; ++i)
    if (opened[i].made) unlink(PathOf(files[i]).c_str());
  return status;
}

void RemoveSharedMemory(const std::vector<SharedMemoryFile>& files, const Account& user,
                        const std::string& mark) {
  for (const SharedMemoryFile& file : files) {
    const auto fd = OpenExisting(file, user);
    if (!fd.ok() || !HasMark(fd->get(), mark) || !NobodyElseHas(fd->get())) continue;
    const FilesAsUser as_user(user);
    if (as_user.ok()) unlink(PathOf(file).c_str());
  }
}

}  // namespace siding
