// POSIX shared memory and named semaphores: files in /dev/shm. They are memory with a name, and of one node.
// So they go where the rest of the job's memory goes: into the image, off the node once the image counts, and
// back at a restore, here or on another node.
//
// These are files that the job's processes have open or mapped, one of them to write, and that are its
// user's. All others, such as data that somebody has put there to be read, are files like those on disks: see
// open_files.h.
//
// A task whose connections are kept has a /dev/shm of its own, which nobody else sees: CRIU saves that as a
// whole.
//
// A file that goes into an image gets its task's mark (agent/os/names.h), an extended attribute that only
// root can set. A restore writes over a file with this mark that no process has open, and over no other.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/os/account.h"
#include "agent/os/held.h"

namespace siding {

struct SharedMemoryFile {
  std::string name;   // in /dev/shm
  std::string image;  // the file in the image's folder that has its content
  int64_t size = 0;   // bytes
  uint32_t mode = 0;  // permissions
  FileId id;          // here and now; not kept in the image
  bool operator==(const SharedMemoryFile&) const = default;
};

// Marks the files that the processes of the tree have, and copies them into the folder. The processes must be
// frozen. A file whose node takes no marks is left out. kFailedPrecondition names a file with a lease, or one
// with which all are larger than /dev/shm. kCancelled once `abandon` is set. For root.
absl::StatusOr<std::vector<SharedMemoryFile>> SaveSharedMemory(pid_t init, const Account& user,
                                                               const std::string& mark,
                                                               const std::string& image_folder,
                                                               const std::atomic<bool>& abandon);

// What the processes of the tree have in a /dev/shm of their own, if it is one (agent/shim/start_init.cc):
// CRIU has all of that in the image. For root.
FileIds FilesInOwnSharedMemory(pid_t init);

// A JSON array, the form kept in the image's metadata.
std::string SharedMemoryToJson(const std::vector<SharedMemoryFile>& files);
// kDataLoss if it is none, or has in it what no image would have.
absl::StatusOr<std::vector<SharedMemoryFile>> SharedMemoryFromJson(const std::string& json);

// Makes the files again, or writes over those of the user's with the mark, as they were. Names are looked up
// with the user's rights; a new file gets its name when it is complete. All are looked at before one is
// changed. kFailedPrecondition names one that is somebody's, or that some process has open. For root.
absl::Status PutSharedMemoryBack(const std::vector<SharedMemoryFile>& files, const std::string& image_folder,
                                 const Account& user, const std::string& mark);

// Removes those that have the mark still, and that no process has open. With the user's rights. For root.
void RemoveSharedMemory(const std::vector<SharedMemoryFile>& files, const Account& user,
                        const std::string& mark);

}  // namespace siding
