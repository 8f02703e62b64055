// Processes that are started and waited for, and the signals of this one.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/units.h"

namespace siding::launch {

// Signals that this process takes one by one, from a descriptor to be polled. One for a process, before any
// other thread.
class Signals {
 public:
  static absl::StatusOr<Signals> Take();

  int fd() const { return fd_.get(); }
  // The next one that has come; nothing: none has.
  std::optional<int> Next() const;
  // Those that were blocked before, for what is started.
  const sigset_t& before() const { return before_; }

 private:
  Signals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

// Whether a signal asks to end.
bool IsStop(int signal_number);

// The file that a name without a slash stands for in `path`, or the name itself. kNotFound: there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name, const char* path);

// Starts argv[0], a path or a name in PATH, in a process group of its own. It works in `folder`, or in /
// where that is none; empty: in that of this process.
absl::StatusOr<pid_t> StartProgram(const std::vector<std::string>& argv, const sigset_t& mask,
                                   const std::string& folder = "");

// Those of the descriptors at which something has come, after a second at most: none, then.
std::vector<int> AwaitInput(const std::vector<int>& fds);
inline constexpr Duration kMostAwaited = std::chrono::seconds(1);

// As shells have it: 128 + N if signal N has ended it.
int ExitCode(int wait_status);

}  // namespace siding::launch
