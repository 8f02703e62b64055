// What a task that starts and a node's agent say to each other, and what a job with a deadline asks the
// controller; docs/design/slurm.md, "Between plugin and agent" and "Asking the controller". Texts of lines
// "key value" in packets of a unix socket (SOCK_SEQPACKET), the first line being what it is and its version.
// Pure; no exceptions, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spank/options.h"

namespace siding::spank {

inline constexpr int kVersion = 1;
inline constexpr char kDefaultSocket[] = "/run/siding/slurm.sock";
inline constexpr size_t kMaxMessage = 8192;
inline constexpr size_t kMaxPath = 1024;
inline constexpr int kBatchStep = -1;

// One task that is about to start.
struct Registration {
  uint32_t job = 0;
  int step = kBatchStep;  // or the number of an srun step
  uint32_t task = 0;      // in the step, over all nodes
  uint32_t tasks = 1;     // of the step, on all nodes
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t restarts = 0;  // how often Slurm has requeued the job
  char command[64] = "";  // a checksum of its command; empty: not said
  Options options;
};

// The text but for the lines that the shim adds: kRestarts and a number, since Slurm tells how often the job
// was requeued only when the task is the user's already, while all else is better said by root; kCommand and
// a checksum; and of a task with GPUs which they are. Returns the length, 0 if it does not fit.
inline constexpr char kRestarts[] = "restarts";
inline constexpr char kCommand[] = "command";
inline constexpr char kJobGpus[] = "job-gpus";        // Slurm's SLURM_JOB_GPUS
inline constexpr char kStepGpus[] = "step-gpus";      // Slurm's SLURM_STEP_GPUS
inline constexpr char kGpuDevices[] = "gpu-devices";  // numbers of those it may open, if it may not open all
// Of a gang's task.
inline constexpr char kKeepConnections[] = "keep-connections";
size_t FormatRegistration(const Registration& registration, char* text, size_t size);

// One of the options of the Slurm command that submits a job, as Slurm writes it.
struct GivenOption {
  const char* name;   // without the dashes
  const char* value;  // null: not given
};
// A job that is about to be submitted. Times in microseconds since 1970 UTC.
struct Question {
  int64_t start_by_us = 0;
  int64_t not_before_us = 0;  // 0: at once
  const GivenOption* options = nullptr;
  int option_count = 0;
};
// Line breaks in values become blanks. Returns the length, 0 if it does not fit.
size_t FormatQuestion(const Question& question, char* text, size_t size);

enum class AnswerKind {
  kAccepted,  // to the registration: the orders will be in this folder
  kRefused,  // to the registration: start the command as if siding were not there; to the question: it cannot
             // start by then
  kGo,       // after the registration's acceptance: the orders are there
  kFailed,   // after the registration's acceptance: there will be none
  kPromised,   // to the question: it can start by then
  kUndecided,  // to the question: that is not known yet, as something was restarted a moment ago
};
struct Answer {
  AnswerKind kind = AnswerKind::kRefused;
  char folder[kMaxPath] = "";  // of an acceptance
  char reason[kMaxPath] = "";  // of a refusal or a failure, or why nothing is decided
  int64_t starts_us = 0;       // of a promise: when it is to start; 0: late, in its turn
};
// False if it is no answer of this version.
bool ParseAnswer(const char* text, size_t size, Answer& answer);

}  // namespace siding::spank
