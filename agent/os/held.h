// What processes have open or mapped, run or work in.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <string>
#include <utility>

namespace siding {

// A file that a process has, and what it can do with it: R_OK, W_OK, X_OK, or F_OK for nothing but its name.
struct Held {
  pid_t pid = 0;
  std::string how;   // "descriptor 3", "mapping 7f..", "working folder"
  std::string link;  // in /proc: leads to the file itself, whatever its name now means
  int access = F_OK;
};

// All that the processes of the tree have at this moment. For root.
void ForEachHeld(pid_t init, const std::function<void(const Held&)>& visit);

// The name that the kernel gives for a link in /proc: "/tmp/x", "/tmp/x (deleted)", "socket:[4711]". Empty:
// the process, or its file, is gone.
std::string TargetOf(const std::string& link);

// The name by which a regular file is found: its `target`, or, where that has been removed since the file was
// opened, another one in the same folder. Who makes a file that nobody is to see unfinished leaves it so, as
// glibc does with a named semaphore; CRIU takes that other name as well. `target` itself if there is none.
// Paths start at the folder `root`.
std::string LivingName(int root, const std::string& target, const struct stat& file);

// What statfs() says of two file systems that have no files of anybody's: memory of io_setup(), and message
// queues of mq_open().
inline constexpr unsigned long kAioRingMagic = 0xa10a10a1, kMessageQueueMagic = 0x19800202;

// Which file it is, whatever its name.
using FileId = std::pair<dev_t, ino_t>;
inline FileId IdOf(const struct stat& file) { return {file.st_dev, file.st_ino}; }
using FileIds = std::set<FileId>;

}  // namespace siding
