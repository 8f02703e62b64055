// siding-gpu-helper CUDA NVML: the one process of the agent that has the GPU driver's libraries in it. A
// driver that crashes or hangs takes this process with it and nothing else, and what the driver needs to
// start is paid once.
//
// Started by the agent with a socket as descriptor 3, and ends when that is closed. Each question has a
// thread of its own: draining 16 GiB takes seconds, and another task's GPUs need not wait for it.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "agent/gpu/find_function.h"
#include "agent/gpu/helper_nvml.h"
#include "agent/gpu/protocol.h"

namespace siding::gpu {
namespace {

struct Driver {
  char problem[sizeof Answer::text] = "";  // why it cannot be asked; "": it can
  cuda::GetErrorName get_error_name = nullptr;
  cuda::GetState get_state = nullptr;
  cuda::Lock lock = nullptr;
  cuda::Checkpoint checkpoint = nullptr;
  cuda::Restore restore = nullptr;
  cuda::Unlock unlock = nullptr;
};

Driver Load(const char* path) {
  Driver driver;
  if (*path == '\0') return driver;  // this one is asked about devices only
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::snprintf(driver.problem, sizeof driver.problem, "no GPU driver: %s", dlerror());
    return driver;
  }
  cuda::Init init = nullptr;
  if (!Find(library, "cuInit", init) || !Find(library, "cuGetErrorName", driver.get_error_name) ||
      !Find(library, "cuCheckpointProcessGetState", driver.get_state) ||
      !Find(library, "cuCheckpointProcessLock", driver.lock) ||
      !Find(library, "cuCheckpointProcessCheckpoint", driver.checkpoint) ||
      !Find(library, "cuCheckpointProcessRestore", driver.restore) ||
      !Find(library, "cuCheckpointProcessUnlock", driver.unlock)) {
    std::snprintf(driver.problem, sizeof driver.problem,
                  "the GPU driver is too old: checkpoints came with version 570");
    return driver;
  }
  if (const cuda::Result result = init(0); result != cuda::kSuccess) {
    const char* name = "?";
    driver.get_error_name(result, &name);
    std::snprintf(driver.problem, sizeof driver.problem, "the GPU driver does not start: %s", name);
  }
  return driver;
}

cuda::Result Carry(const Driver& driver, Question& question, Answer& answer) {
  switch (question.call) {
    case Call::kState: {
      cuda::ProcessState state = cuda::kRunning;
      const cuda::Result result = driver.get_state(question.pid, &state);
      answer.state = state;
      return result;
    }
    case Call::kLock: {
      cuda::LockArgs args{};
      args.timeout_ms = question.timeout_ms;
      return driver.lock(question.pid, &args);
    }
    case Call::kCheckpoint: {
      cuda::CheckpointArgs args{};
      return driver.checkpoint(question.pid, &args);
    }
    case Call::kRestore: {
      cuda::RestoreArgs args{};
      args.pairs = question.pairs > 0 ? question.pair : nullptr;
      args.pair_count = question.pairs;
      return driver.restore(question.pid, &args);
    }
    case Call::kUnlock: {
      cuda::UnlockArgs args{};
      return driver.unlock(question.pid, &args);
    }
    case Call::kDevice:
      break;  // not the driver's
  }
  return cuda::kInvalidValue;
}

void Respond(const Driver& driver, const Nvml& nvml, Question question) {
  Answer answer{};
  answer.id = question.id;
  if (question.call == Call::kDevice) {
    nvml.Describe(question.pid, answer);
  } else if (driver.problem[0] != '\0') {
    answer.result = -1;
    std::memcpy(answer.text, driver.problem, sizeof answer.text);
  } else {
    const cuda::Result result = Carry(driver, question, answer);
    answer.result = result;
    const char* name = "";
    if (result != cuda::kSuccess && driver.get_error_name(result, &name) == cuda::kSuccess && name != nullptr)
      std::snprintf(answer.text, sizeof answer.text, "%s", name);
  }
  // One message, so threads need no lock for it. If the other end is closed, the main thread ends the
  // process.
  [[maybe_unused]] const ssize_t sent = send(kSocket, &answer, sizeof answer, MSG_NOSIGNAL);
}

int Main(const char* cuda_library, const char* nvml_library) {
  const Driver driver = Load(cuda_library);
  const Nvml nvml(nvml_library);
  for (;;) {
    Question question{};
    const ssize_t n = recv(kSocket, &question, sizeof question, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n != static_cast<ssize_t>(sizeof question)) break;
    std::thread(Respond, std::cref(driver), std::cref(nvml), question).detach();
  }
  _exit(0);  // whatever the driver's threads are at
}

}  // namespace
}  // namespace siding::gpu

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "siding-gpu-helper: is started by siding-agent, with the driver's libraries\n");
    return 2;
  }
  return siding::gpu::Main(argv[1], argv[2]);
}
