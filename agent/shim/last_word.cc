#include "agent/shim/last_word.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kRoomName[] = "/room";
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{3000};

absl::Status WriteInRoom(const std::string& folder, const std::string& name, absl::string_view text) {
  if (text.size() > kLastWordRoom) return absl::OutOfRangeError("longer than its room");
  const std::string room = folder + kRoomName;
  const std::string path = absl::StrCat(folder, "/", name);
  const UniqueFd fd(open(room.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open " + room);
  // Over the blocks that are there: a file that is cut before has none.
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = pwrite(fd.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write " + room);
    at += static_cast<size_t>(n);
  }
  if (ftruncate(fd.get(), static_cast<off_t>(text.size())) != 0 || fsync(fd.get()) != 0)
    return ErrnoError(errno, "write " + room);
  if (rename(room.c_str(), path.c_str()) != 0) return ErrnoError(errno, "rename " + room + " to " + path);
  return SyncDirectory(folder);
}

// Ends early with a signal that has a handler.
void Pause(milliseconds time) {
  const timespec pause{time.count() / 1000, (time.count() % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

absl::Status MakeRoomForLastWord(const std::string& folder) {
  const std::string room = folder + kRoomName;
  const UniqueFd fd(open(room.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoError(errno, "create " + room);
  const int error = posix_fallocate(fd.get(), 0, kLastWordRoom);
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "take room for " + room);
}

absl::Status WriteLastWord(const std::string& folder, const std::string& name, absl::string_view text) {
  if (WriteInRoom(folder, name, text).ok()) return absl::OkStatus();
  return WriteFileDurably(absl::StrCat(folder, "/", name), text);
}

absl::Status WriteUntilDone(const std::function<absl::Status()>& write, const std::function<bool()>& told,
                            Duration told_patience) {
  std::optional<Steady::time_point> told_since;
  for (milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const absl::Status written = write();
    if (written.ok()) {
      if (pause > kFirstPause) fprintf(stderr, "siding-shim: it is written now\n");
      return written;
    }
    if (pause == kFirstPause)
      fprintf(stderr, "siding-shim: %s; it is tried again until it works\n",
              std::string(written.message()).c_str());
    if (told() && !told_since) told_since = Steady::now();
    if (told_since && Steady::now() - *told_since >= told_patience) return written;
    Pause(told_since ? kFirstPause : pause);
  }
}

}  // namespace siding
