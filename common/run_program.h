// Runs another program to its end, with a deadline.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

struct ProgramResult {
  int exit_code = 0;  // 128 + n: it was ended by signal n
  std::string output;
  std::string errors;
};

// How a program is ended before it ends by itself.
struct Interruption {
  std::function<bool()> stop;          // asked some times within a second; empty: there is the limit alone
  std::function<void(pid_t pid)> end;  // of one that has not been reaped; empty: SIGKILL. Does not reap it
};

// argv[0] is looked for in PATH. Standard input is empty; `environment` is added to our own. Blocks until the
// program has ended and been reaped. kNotFound: there is no such program. kDeadlineExceeded: it was ended
// after `limit`; kAborted: because `stop` said so. What it says and how it ends is the caller's to judge.
absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& argv, Duration limit,
                                         const std::map<std::string, std::string>& environment = {},
                                         const Interruption& interruption = {});

// The same for a program that speaks to the user itself: its standard error is ours, and it takes as long as
// it takes. `visit` gets each line of its output when it comes, without its end. Returns the exit code.
absl::StatusOr<int> FollowProgram(const std::vector<std::string>& argv,
                                  const std::function<void(const std::string& line)>& visit);

}  // namespace siding
