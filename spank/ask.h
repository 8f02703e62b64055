// A job with a deadline, while Slurm does not have it yet: siding's controller is asked whether it can start
// by then, and the job is marked for the controller to find in Slurm's queue. docs/design/slurm.md, "Asking
// the controller".
#pragma once

#include <cstdint>

#include "spank/messages.h"
#include "spank/options.h"
#include "spank/slurm_command.h"

namespace siding::spank {

inline constexpr char kDefaultController[] = "/run/siding/ask.sock";
inline constexpr int kPatienceMs = 5000;

enum class Verdict {
  kPromised,
  kRefused,     // Slurm must not get the job
  kUnanswered,  // or not yet decided. Slurm may have the job: a controller that knows more finds its mark
};
struct AskResult {
  Verdict verdict = Verdict::kRefused;
  char words[kMaxPath + 256] = "";  // for the user
};

// Asks at the socket `controller`, or with commas at the first of several that answers, for `patience_ms` at
// most each to be let in and to be answered, and marks the job unless it is refused.
// `now_us` is what "+60s" counts from.
AskResult AskAndMark(const Options& options, int64_t now_us, const SlurmCommand& command,
                     const char* controller, int patience_ms = kPatienceMs);

}  // namespace siding::spank
