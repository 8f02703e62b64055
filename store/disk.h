// The changes that the store makes on a file system, one call each, so that tests can make any of them fail
// and cut the power between any two. Reading is not here: a wrong read shows as a wrong checksum.
//
// CRIU writes past this, straight into the draft; it is the sealing of the draft that makes its files
// durable.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files.h"
#include "common/units.h"

namespace siding::store {

// As the system calls: what fails returns -1 and leaves the reason in errno. Thread-safe.
class Disk {
 public:
  virtual ~Disk() = default;
  // A new file of mode 0600, open for writing.
  virtual int Create(const std::string& path) = 0;
  virtual ssize_t Write(int fd, const void* data, size_t size) = 0;
  // The file's content and size; not its name, which is its folder's.
  virtual int SyncFile(int fd) = 0;
  // Which names are in the folder.
  virtual int SyncFolder(const std::string& path) = 0;
  // Of mode 0700.
  virtual int MakeFolder(const std::string& path) = 0;
  virtual int Rename(const std::string& from, const std::string& to) = 0;
  // Of two folders, each has the other's name afterwards; at once. EINVAL, ENOSYS or EOPNOTSUPP where the
  // file system cannot.
  virtual int Exchange(const std::string& one, const std::string& other) = 0;
  // A second name of the same file (a hard link).
  virtual int Link(const std::string& file, const std::string& name) = 0;
  virtual int RemoveFile(const std::string& path) = 0;
  virtual int RemoveFolder(const std::string& path) = 0;
  // As IsOnThisMachine().
  virtual bool IsNear(const std::string& folder) const;
  // What an unprivileged writer may still use: nothing on what is mounted read-only. Negative if it fails.
  virtual int64_t FreeSpace(const std::string& path) = 0;
};

// The real one. Lives as long as the program.
Disk& RealDisk();

// Whether files there are written to a disk, or memory, of this machine. False where it is not known: each
// byte may go over a network, and to read a file again be as dear as to write it.
bool IsOnThisMachine(const std::string& folder);

// Not where that is a file system in memory, or may lie on one (overlay).
bool IsOnDisk(const std::string& folder);

// Of this machine, so that what is there is gone when it restarts; if there is no such folder, what is made
// there. False where it is not known.
bool IsInMemory(const std::string& folder);

// What a file system in memory may take of it, where the folder is on one; else 0.
Bytes SizeInMemory(const std::string& folder);

// Opened so that it can be told from another one that comes into its place (IsNamed()); -1 and errno if there
// is no folder of that name.
int HoldFolder(const std::string& path);

// For reading. kDataLoss if it is a link, a pipe, a device or the like, which is not opened; kNotFound.
absl::StatusOr<UniqueFd> OpenRegular(const std::string& path);

absl::Status WriteAll(Disk& disk, int fd, absl::string_view data, const std::string& path);

// A new file with that content, synced; its name is not. On failure nothing is left of it.
absl::Status WriteNewFile(Disk& disk, const std::string& path, absl::string_view content);

// A folder and those above it that are missing, durably.
absl::Status MakeFolders(Disk& disk, const std::string& path);

absl::Status SyncFolder(Disk& disk, const std::string& path);

// A file, or a folder and all in it. OK if there is nothing (any more): two may remove the same tree.
absl::Status RemoveTree(Disk& disk, const std::string& path);

}  // namespace siding::store
