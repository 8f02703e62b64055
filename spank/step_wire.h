// Between a step's task as Slurm sees it (siding-slurm-task, the user's) and the shim behind it (root's):
// packets of a socket pair that the plugin makes before either of them is there. Both ends are of one build.
//
// The plugin, still root, sends the text of the registration (messages.h); later the task sends a
// StepHandover with its descriptors 0, 1 and 2 (SCM_RIGHTS). The shim answers with one kStarted and later
// one kEnded, kComeBack or kHold, or with one of the others. An end that closes without a word has died.
#pragma once

#include <cstdint>

namespace siding::spank {

struct StepHandover {
  uint32_t restarts = 0;  // how often Slurm has requeued the job
};

enum class StepWord : int32_t {
  kStarted,     // `first`: pid of the command's init
  kNotStarted,  // and nothing of it is left: the task runs the command itself
  kEnded,       // `first`: exit code, `second`: signal number or 0
  kComeBack,    // its state is kept, and it has left or cannot continue now: Slurm is to start it again
  kHold,        // its state is kept, but every start has failed: Slurm is to keep it until it is released
};
struct StepMessage {
  StepWord word;
  int32_t first = 0;
  int32_t second = 0;
};

// The exit codes that RequeueExit= and RequeueExitHold= in slurm.conf name.
inline constexpr int kRequeueExit = 99;
inline constexpr int kHoldExit = 98;

// A requeued job whose state is or may be kept, and that could not continue from it, is started again so
// often before it is held.
inline constexpr int kMostStarts = 10;
inline constexpr StepWord AfterFailedStart(int starts) {
  return starts < kMostStarts ? StepWord::kComeBack : StepWord::kHold;
}

// The plugin's calling conventions: descriptors and arguments of the programs it starts.
inline constexpr char kShimForSlurm[] = "--slurm";
inline constexpr int kShimTaskFd = 3;   // siding-shim --slurm: its end of the socket pair,
inline constexpr int kShimAgentFd = 4;  // and the connection to the agent
inline constexpr char kTaskOfScript[] = "script";
inline constexpr char kTaskOfStep[] = "step";
inline constexpr char kTaskOfGang[] =
    "gang";  // of a step whose connections are kept: it never runs without siding
inline constexpr int kTaskArguments = 3;  // siding-slurm-task FD script|step|gang COMMAND...

}  // namespace siding::spank
