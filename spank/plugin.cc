// The hooks that Slurm calls. A job that did not ask is not touched; whatever goes wrong on a node costs one
// line in slurmd's log, and the job runs as if siding were not there, but for a gang, which is started again.
// At submission the user is told.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "spank/ask.h"
#include "spank/launch.h"
#include "spank/messages.h"
#include "spank/options.h"
#include "spank/step_wire.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

namespace siding::spank {
namespace {

constexpr int kFlagCount = sizeof kFlags / sizeof *kFlags;

// One job step's process, or one srun or sbatch: one set of flags.
struct State {
  Options options;
  const char* socket = kDefaultSocket;
  const char* controller = kDefaultController;
  const char* programs = "/usr/bin";  // the folder of siding-shim and siding-slurm-task
  spank_option flags[kFlagCount];
  Launch launch;
} state;

// Slurm calls this at submission, where a wrong value must stop the user, and again on the node, where it
// cannot be wrong any more (unless plugins of two versions meet: then the flag counts as not given).
int TakeFlag(int number, const char* value, int remote) {
  const FlagText& flag = kFlags[number];
  // A value that was left out travels to the node as an empty one, and from a script to its srun as this
  // text.
  if (remote != 0 && value != nullptr && *value == '\0') value = nullptr;
  if (value != nullptr && std::strcmp(value, "(null)") == 0) value = nullptr;
  const char* const problem = Set(state.options, flag.flag, value);
  if (problem == nullptr) return 0;
  if (remote != 0) {
    slurm_info("siding: --%s=%s: %s; ignored", flag.name, value == nullptr ? "" : value, problem);
    return 0;
  }
  slurm_error("siding: --%s=%s: %s", flag.name, value == nullptr ? "" : value, problem);
  return -1;
}

// Slurm gives a job the flags that it was submitted with, for what is submitted in it. The deadline is only
// its own.
void ForgetDeadlineOfSurroundingJob() { unsetenv("SLURM_SPANK__SLURM_SPANK_OPTION_siding_siding_start_by"); }

// Also for srun, unless it starts a step of a job that is there.
bool MakesJob(const SlurmCommand& command, spank_context_t context) {
  if (context == S_CTX_ALLOCATOR) return true;
  if (std::getenv("SLURM_JOB_ID") != nullptr || std::getenv("SLURM_JOBID") != nullptr) return false;
  return !command.complete() || Given(command, "jobid") == nullptr;
}

[[noreturn]] void Refuse(const char* why) {
  slurm_error("siding: %s", why);
  // Slurm does not care for what an optional plugin returns.
  std::exit(1);
}

void AskController(const SlurmCommand& command) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const AskResult result =
      AskAndMark(state.options, now.tv_sec * 1'000'000LL + now.tv_nsec / 1000, command, state.controller);
  if (result.verdict == Verdict::kRefused) Refuse(result.words);
  // A script wants to hear bad news only.
  if (result.verdict == Verdict::kUnanswered || isatty(STDERR_FILENO) == 1)
    slurm_info("siding: %s", result.words);
}

bool IsPlainStep(uint32_t step) { return step == SLURM_BATCH_SCRIPT || step <= SLURM_MAX_NORMAL_STEP_ID; }

bool Describe(spank_t spank, Registration& r) {
  uint32_t step = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS || !IsPlainStep(step)) return false;
  if (spank_get_item(spank, S_JOB_ID, &r.job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_TASK_GLOBAL_ID, &r.task) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &r.tasks) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS) {
    slurm_info("siding: Slurm does not describe the task; it runs as not preemptible");
    return false;
  }
  r.step = step == SLURM_BATCH_SCRIPT ? kBatchStep : static_cast<int>(step);
  // A batch script is one process, whatever the job asks for.
  if (r.step == kBatchStep) r.tasks = 1;
  r.uid = uid;
  r.gid = gid;
  r.options = state.options;
  // A script talks to Slurm, by srun: its steps have what it was submitted with.
  r.options.keep_connections = state.options.keep_connections && r.step != kBatchStep;
  return true;
}

}  // namespace
}  // namespace siding::spank

#pragma GCC visibility push(default)
extern "C" {

using siding::spank::kFlagCount;
using siding::spank::kFlags;
using siding::spank::state;

// Constants are a file's own in C++ unless it is said that they are not.
extern const char plugin_name[], plugin_type[];
extern const unsigned int plugin_version, spank_plugin_version;
SPANK_PLUGIN(siding, 1)

int slurm_spank_init(spank_t spank, int argc, char** argv) {
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "socket=", 7) == 0)
      state.socket = argv[i] + 7;
    else if (std::strncmp(argv[i], "controller=", 11) == 0)
      state.controller = argv[i] + 11;
    else if (std::strncmp(argv[i], "programs=", 9) == 0)
      state.programs = argv[i] + 9;
    else
      slurm_error(
          "siding: plugstack.conf: '%s' is unknown; expected socket=PATH, controller=PATH or programs=FOLDER",
          argv[i]);
  }
  const spank_context_t context = spank_context();
  // Of slurmd's own environment, not of the job's: several nodes on one machine share plugstack.conf.
  const char* const socket_of_node = context == S_CTX_REMOTE ? std::getenv("SIDING_SLURM_SOCKET") : nullptr;
  if (socket_of_node != nullptr) state.socket = socket_of_node;
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
  if (context != S_CTX_REMOTE) siding::spank::ForgetDeadlineOfSurroundingJob();
  for (int i = 0; i < kFlagCount; ++i) {
    state.flags[i] = {const_cast<char*>(kFlags[i].name),
                      const_cast<char*>(kFlags[i].argument),
                      const_cast<char*>(kFlags[i].usage),
                      kFlags[i].may_be_bare ? 2 : 1,
                      i,
                      siding::spank::TakeFlag};
    if (spank_option_register(spank, &state.flags[i]) != ESPANK_SUCCESS)
      slurm_info("siding: --%s cannot be registered", kFlags[i].name);
  }
  return 0;
}

int slurm_spank_init_post_opt(spank_t, int, char**) {
  const spank_context_t context = spank_context();
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return 0;
  const char* const problem = siding::spank::Contradiction(state.options);
  if (problem != nullptr) siding::spank::Refuse(problem);
  if (!state.options.on_demand()) return 0;
  const siding::spank::SlurmCommand command = siding::spank::CommandOfThisProcess();
  if (siding::spank::MakesJob(command, context)) siding::spank::AskController(command);
  return 0;
}

// Root, in the forked task, before it becomes the user's.
int slurm_spank_task_init_privileged(spank_t spank, int, char**) {
  siding::spank::Registration registration;
  if (!state.options.preemptible || !siding::spank::Describe(spank, registration)) return 0;
  const char* const problem =
      siding::spank::Prepare(state.socket, state.programs, registration, state.launch);
  if (problem != nullptr)
    slurm_info("siding: %s: %s; the task %s", state.socket, problem,
               registration.options.keep_connections ? "is started again" : "runs as not preemptible");
  return 0;
}

// The user, in the forked task: all is set up, and Slurm's own execve() would be next.
int slurm_spank_task_init(spank_t spank, int, char**) {
  int argc = 0;
  char** argv = nullptr;
  char** environment = nullptr;
  char restarts[16];
  const bool requeued =
      spank_getenv(spank, "SLURM_RESTART_COUNT", restarts, sizeof restarts) == ESPANK_SUCCESS;
  const bool is_gang = std::strcmp(state.launch.kind, siding::spank::kTaskOfGang) == 0;
  const bool wanted = state.launch.prepared() || ((requeued || is_gang) && state.launch.tried());
  if (!wanted || spank_get_item(spank, S_JOB_ARGV, &argc, &argv) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_ENV, &environment) != ESPANK_SUCCESS) {
    return 0;
  }
  const char* const problem = siding::spank::Become(state.launch, argc, argv, environment);
  slurm_info("siding: %s: %s; the task runs as not preemptible", state.launch.task_program, problem);
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
