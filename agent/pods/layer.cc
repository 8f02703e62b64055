#include "agent/pods/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kHidden[] = ".wh.";
constexpr char kOpaque[] = ".wh..wh..opq";
constexpr size_t kBlock = 1 << 20;

struct FreeArchive {
  void operator()(archive* a) const { archive_free(a); }
};
struct FreeEntry {
  void operator()(archive_entry* e) const { archive_entry_free(e); }
};
using Archive = std::unique_ptr<archive, FreeArchive>;
using Entry = std::unique_ptr<archive_entry, FreeEntry>;

absl::Status ErrorOf(archive* a, const std::string& what) {
  const int error = archive_errno(a);
  const char* text = archive_error_string(a);
  return Annotate(error > 0 ? ErrnoError(error, what) : absl::InternalError(what),
                  text != nullptr ? text : "libarchive says nothing");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}
std::string NameOf(const std::string& path) { return path.substr(FolderOf(path).size()); }

// ---- Into the archive. ----

class Saver {
 public:
  Saver(std::string folder, const std::atomic<bool>* abandon)
      : folder_(std::move(folder)), abandon_(abandon) {}

  absl::Status Save(const std::string& path) {
    out_.reset(archive_write_new());
    archive_write_set_format_pax(out_.get());  // the restricted form has no fractions of seconds
    archive_write_add_filter_none(out_.get());
    // Names are bytes, whatever this process takes for its locale.
    archive_write_set_options(out_.get(), "hdrcharset=BINARY");
    if (archive_write_open_filename(out_.get(), path.c_str()) != ARCHIVE_OK)
      return ErrorOf(out_.get(), "write " + path);
    resolver_.reset(archive_entry_linkresolver_new());
    archive_entry_linkresolver_set_strategy(resolver_.get(), archive_format(out_.get()));
    disk_.reset(archive_read_disk_new());
    archive_read_disk_set_symlink_physical(disk_.get());
    archive_read_disk_set_behavior(disk_.get(), ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS);
    if (archive_read_disk_open(disk_.get(), folder_.c_str()) != ARCHIVE_OK)
      return ErrorOf(disk_.get(), "read " + folder_);
    SIDING_RETURN_IF_ERROR(AddAll());
    if (archive_write_close(out_.get()) != ARCHIVE_OK) return ErrorOf(out_.get(), "write " + path);
    return absl::OkStatus();
  }

 private:
  struct FreeResolver {
    void operator()(archive_entry_linkresolver* r) const { archive_entry_linkresolver_free(r); }
  };

  absl::Status AddAll() {
    for (;;) {
      const Entry entry(archive_entry_new());
      SIDING_RETURN_IF_ERROR(GivenUp());
      const int next = archive_read_next_header2(disk_.get(), entry.get());
      if (next == ARCHIVE_EOF) return absl::OkStatus();
      if (next != ARCHIVE_OK) return ErrorOf(disk_.get(), "read " + folder_);
      archive_read_disk_descend(disk_.get());
      const std::string source = archive_entry_sourcepath(entry.get());
      absl::string_view name = source;
      absl::ConsumePrefix(&name, folder_);
      absl::ConsumePrefix(&name, "/");
      SIDING_RETURN_IF_ERROR(Add(entry.get(), source, name.empty() ? "." : std::string(name)));
    }
  }

  absl::Status GivenUp() const {
    return abandon_ != nullptr && *abandon_ ? absl::AbortedError("read " + folder_ + ": given up")
                                            : absl::OkStatus();
  }

  absl::Status Add(archive_entry* entry, const std::string& source, const std::string& name) {
    const bool hides = archive_entry_filetype(entry) == AE_IFCHR && archive_entry_rdev(entry) == 0;
    if (hides) return AddEmpty(FolderOf(name) + kHidden + NameOf(name));
    if (absl::StartsWith(NameOf(name), kHidden))
      return absl::FailedPreconditionError("names that begin with .wh. cannot be saved: " + name);
    // Who listens at it has it open, and CRIU makes it again.
    if (archive_entry_filetype(entry) == AE_IFSOCK) return absl::OkStatus();
    archive_entry_copy_pathname(entry, name.c_str());
    // The layer has a part of it alone: the rest is in one of those below, at the same place or at another.
    for (const char* mark : {"trusted.overlay.metacopy", "trusted.overlay.redirect"}) {
      if (lgetxattr(source.c_str(), mark, nullptr, 0) >= 0)
        return absl::FailedPreconditionError(
            absl::StrCat("overlays with ", mark, " cannot be saved: ", name));
    }
    const bool opaque = archive_entry_filetype(entry) == AE_IFDIR && IsOpaque(source);
    RemoveOverlayMarks(entry);
    archive_entry* spare = nullptr;
    archive_entry_linkify(resolver_.get(), &entry, &spare);
    SIDING_RETURN_IF_ERROR(Write(entry, source));
    return opaque ? AddEmpty((name == "." ? "" : name + "/") + kOpaque) : absl::OkStatus();
  }

  static bool IsOpaque(const std::string& folder) {
    char value = 0;
    return lgetxattr(folder.c_str(), "trusted.overlay.opaque", &value, 1) == 1 && value == 'y';
  }

  // They mean something in the overlay that the layer was in, and nothing in another.
  static void RemoveOverlayMarks(archive_entry* entry) {
    struct Attribute {
      std::string name;
      std::string value;
    };
    std::vector<Attribute> kept;
    const char* name = nullptr;
    const void* value = nullptr;
    size_t size = 0;
    archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
      if (!absl::StartsWith(name, "trusted.overlay."))
        kept.push_back({name, std::string(static_cast<const char*>(value), size)});
    }
    archive_entry_xattr_clear(entry);
    for (const Attribute& a : kept)
      archive_entry_xattr_add_entry(entry, a.name.c_str(), a.value.data(), a.value.size());
  }

  absl::Status AddEmpty(const std::string& name) {
    const Entry entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0600);
    archive_entry_set_size(entry.get(), 0);
    return Write(entry.get(), "");
  }

  absl::Status Write(archive_entry* entry, const std::string& source) {
    if (archive_write_header(out_.get(), entry) != ARCHIVE_OK)
      return ErrorOf(out_.get(), absl::StrCat("save ", archive_entry_pathname(entry)));
    // Of a second link nothing follows.
    if (source.empty() || archive_entry_filetype(entry) != AE_IFREG || archive_entry_size(entry) == 0 ||
        archive_entry_hardlink(entry) != nullptr)
      return absl::OkStatus();
    written_ = 0;
    for (;;) {
      const void* block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      SIDING_RETURN_IF_ERROR(GivenUp());
      const int read = archive_read_data_block(disk_.get(), &block, &size, &offset);
      if (read == ARCHIVE_EOF) return absl::OkStatus();
      if (read != ARCHIVE_OK) return ErrorOf(disk_.get(), "read " + source);
      SIDING_RETURN_IF_ERROR(Fill(offset));
      if (archive_write_data(out_.get(), block, size) < 0) return ErrorOf(out_.get(), "save " + source);
      written_ = offset + static_cast<la_int64_t>(size);
    }
  }

  // Holes between the blocks of a file, which a plain tar has as zeros.
  absl::Status Fill(la_int64_t offset) {
    static const std::string zeros(kBlock, '\0');
    while (written_ < offset) {
      SIDING_RETURN_IF_ERROR(GivenUp());
      const size_t size = std::min<la_int64_t>(offset - written_, kBlock);
      if (archive_write_data(out_.get(), zeros.data(), size) < 0) return ErrorOf(out_.get(), "save zeros");
      written_ += static_cast<la_int64_t>(size);
    }
    return absl::OkStatus();
  }

  const std::string folder_;
  const std::atomic<bool>* const abandon_;
  Archive out_, disk_;
  std::unique_ptr<archive_entry_linkresolver, FreeResolver> resolver_;
  la_int64_t written_ = 0;  // of the file under way
};

// ---- And back: in a process whose root is the folder. ----

void Empty(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    std::filesystem::remove_all(entry.path(), error);
}

std::string WithoutSlash(std::string name) {
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

// As in an overlay, a folder takes the place of all but a folder, even of a link to one, and what is no
// folder takes the place of one.
absl::Status MakeWay(const std::string& name, bool for_folder) {
  struct stat there = {};
  if (lstat(name.c_str(), &there) != 0 || S_ISDIR(there.st_mode) == for_folder) return absl::OkStatus();
  std::error_code error;
  std::filesystem::remove_all(name, error);
  return error ? ErrnoError(error.value(), "remove " + name) : absl::OkStatus();
}

absl::Status Extract(archive* in, archive* out, archive_entry* entry) {
  const std::string name = WithoutSlash(archive_entry_pathname(entry));
  if (NameOf(name) == kOpaque) {
    Empty(FolderOf(name).empty() ? "." : FolderOf(name));
    return absl::OkStatus();
  }
  if (absl::StartsWith(NameOf(name), kHidden)) {
    std::error_code error;
    std::filesystem::remove_all(FolderOf(name) + NameOf(name).substr(sizeof(kHidden) - 1), error);
    return error ? ErrnoError(error.value(), "remove " + name) : absl::OkStatus();
  }
  SIDING_RETURN_IF_ERROR(MakeWay(name, archive_entry_filetype(entry) == AE_IFDIR));
  if (archive_write_header(out, entry) != ARCHIVE_OK) return ErrorOf(out, "make " + name);
  for (;;) {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int read = archive_read_data_block(in, &block, &size, &offset);
    if (read == ARCHIVE_EOF) break;
    if (read != ARCHIVE_OK) return ErrorOf(in, "read of " + name);
    if (archive_write_data_block(out, block, size, offset) != ARCHIVE_OK)
      return ErrorOf(out, "write " + name);
  }
  return archive_write_finish_entry(out) == ARCHIVE_OK ? absl::OkStatus() : ErrorOf(out, "make " + name);
}

// When all is in them: before that, what is made in a folder changes its time.
absl::Status SetTimes(const std::map<std::string, timespec>& folders) {
  for (const auto& [name, time] : folders) {
    const timespec times[2] = {{0, UTIME_OMIT}, time};
    if (utimensat(AT_FDCWD, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
      return ErrnoError(errno, "set the time of " + name);
  }
  return absl::OkStatus();
}

absl::Status ExtractAll(int fd) {
  std::map<std::string, timespec> folders;
  const Archive in(archive_read_new());
  archive_read_support_format_tar(in.get());
  if (archive_read_open_fd(in.get(), fd, kBlock) != ARCHIVE_OK) return ErrorOf(in.get(), "read the archive");
  const Archive out(archive_write_disk_new());
  archive_write_disk_set_options(
      out.get(), ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_ACL |
                     ARCHIVE_EXTRACT_XATTR | ARCHIVE_EXTRACT_UNLINK | ARCHIVE_EXTRACT_SPARSE);
  for (;;) {
    archive_entry* entry = nullptr;
    const int next = archive_read_next_header(in.get(), &entry);
    if (next == ARCHIVE_EOF) break;
    if (next != ARCHIVE_OK) return ErrorOf(in.get(), "read the archive");
    SIDING_RETURN_IF_ERROR(Extract(in.get(), out.get(), entry));
    if (archive_entry_filetype(entry) == AE_IFDIR)
      folders[WithoutSlash(archive_entry_pathname(entry))] = {archive_entry_mtime(entry),
                                                              archive_entry_mtime_nsec(entry)};
  }
  if (archive_write_close(out.get()) != ARCHIVE_OK) return ErrorOf(out.get(), "finish");
  return SetTimes(folders);
}

}  // namespace

absl::Status SaveLayer(const std::string& folder, const std::string& archive,
                       const std::atomic<bool>* abandon) {
  // libarchive goes from folder to folder, and all threads of a program have one working folder in common;
  // but for one that has left them.
  absl::Status status;
  std::thread([&] {
    status = unshare(CLONE_FS) == 0 ? Saver(folder, abandon).Save(archive) : ErrnoError(errno, "unshare");
  }).join();
  return status;
}

absl::Status PutLayerBack(const std::string& archive, const std::string& folder) {
  const UniqueFd fd(open(archive.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + archive);
  int words[2];
  if (pipe2(words, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(words[0]), write_end(words[1]);
  const pid_t child = fork();
  if (child < 0) return ErrnoError(errno, "fork");
  if (child == 0) {
    absl::Status status;
    if (chroot(folder.c_str()) != 0 || chdir("/") != 0) status = ErrnoError(errno, "chroot to " + folder);
    umask(0);
    if (status.ok()) status = ExtractAll(fd.get());
    const std::string words_of(status.message());
    if (!status.ok() && write(write_end.get(), words_of.data(), words_of.size()) < 0) _exit(2);
    _exit(status.ok() ? 0 : 1);
  }
  write_end.Reset();
  const auto said = ReadAll(read_end, "the child", 1 << 16);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("put ", archive, " back into ", folder, ": ",
                                          said.ok() && !said->empty() ? *said : "the process died"));
}

}  // namespace siding
