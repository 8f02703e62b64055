#include "agent/shim/last_word.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/room.h"

namespace siding {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kRoomName[] = "/room";
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{3000};

// Ends early with a signal that has a handler.
void Pause(milliseconds time) {
  const timespec pause{time.count() / 1000, (time.count() % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace

absl::Status MakeRoomForLastWord(const std::string& folder) {
  return TakeRoom(folder + kRoomName, kLastWordRoom);
}

absl::Status WriteLastWord(const std::string& folder, const std::string& name, absl::string_view text) {
  const std::string path = absl::StrCat(folder, "/", name);
  const bool written = WriteInRoom(folder + kRoomName, path, text).ok();
  return written ? absl::OkStatus() : WriteFileDurably(path, text);
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
    if (absl::IsNotFound(written)) return written;
    if (pause == kFirstPause)
      fprintf(stderr, "siding-shim: %s; it is tried again until it works\n",
              std::string(written.message()).c_str());
    if (told() && !told_since) told_since = Steady::now();
    if (told_since && Steady::now() - *told_since >= told_patience) return written;
    Pause(told_since ? kFirstPause : pause);
  }
}

}  // namespace siding
