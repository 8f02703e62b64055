#include "agent/gpu/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/gpu/drain.h"
#include "common/files.h"
#include "common/since.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kStartMilliseconds = 30000;
constexpr GpuTimes kTimes{std::chrono::seconds(10), std::chrono::seconds(60)};

// The GPU for as long as it lives.
struct Taken {
  NodeGpus& gpus;
  ~Taken() { gpus.Release(kProbeTask); }
};

class Program {
 public:
  static absl::StatusOr<Program> Start(const std::string& program, const std::string& library, Bytes memory,
                                       const std::string& uuid) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
    UniqueFd in_read(in[0]), in_write(in[1]);
    if (pipe2(out, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
    UniqueFd out_read(out[0]), out_write(out[1]);
    const std::string mib = absl::StrCat(memory.value >> 20);
    // Made here: between fork and exec nothing may be allocated.
    std::vector<std::string> environment = {"CUDA_VISIBLE_DEVICES=" + uuid};
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
    std::vector<char*> pointers;
    for (std::string& entry : environment) pointers.push_back(entry.data());
    pointers.push_back(nullptr);
    const pid_t pid = fork();
    if (pid < 0) return ErrnoError(errno, "fork");
    if (pid == 0) {
      if (dup2(in_read.get(), 0) < 0 || dup2(out_write.get(), 1) < 0) _exit(127);
      execle(program.c_str(), program.c_str(), library.c_str(), mib.c_str(), nullptr, pointers.data());
      _exit(127);
    }
    return Program(pid, std::move(in_write), std::move(out_read));
  }
  Program(Program&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), in_(std::move(other.in_)), out_(std::move(other.out_)) {}
  ~Program() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  absl::Status AwaitReady() const {
    pollfd answered{out_.get(), POLLIN, 0};
    if (poll(&answered, 1, kStartMilliseconds) <= 0)
      return absl::DeadlineExceededError("the probe does not start");
    char line[256];
    const ssize_t n = read(out_.get(), line, sizeof line - 1);
    if (n <= 0) return absl::InternalError("the probe ended without an answer");
    line[n - 1] = '\0';
    return std::string(line) == "ready" ? absl::OkStatus() : absl::InternalError(line);
  }
  pid_t pid() const { return pid_; }

 private:
  Program(pid_t pid, UniqueFd in, UniqueFd out) : pid_(pid), in_(std::move(in)), out_(std::move(out)) {}
  pid_t pid_;
  UniqueFd in_;
  UniqueFd out_;
};

}  // namespace

absl::StatusOr<GpuProbe> ProbeGpu(NodeGpus& gpus, bool others_have_them, const std::string& program,
                                  const std::string& cuda_library, Bytes memory) {
  const std::vector<std::string> idle = gpus.Idle();
  SIDING_ASSIGN_OR_RETURN(const auto taken, gpus.Take(kProbeTask, 1, idle));
  const Taken hold{gpus};
  if (others_have_them && std::find(idle.begin(), idle.end(), taken[0]) == idle.end())
    return absl::ResourceExhaustedError("a process is on every GPU");
  SIDING_RETURN_IF_ERROR(gpus.CheckFree(taken, memory));
  const Bytes before = gpus.UsedNow(taken);
  SIDING_ASSIGN_OR_RETURN(const Program running, Program::Start(program, cuda_library, memory, taken[0]));
  SIDING_RETURN_IF_ERROR(running.AwaitReady());
  GpuProbe probe;
  probe.bytes = std::max(memory, gpus.UsedNow(taken) - before);
  auto start = std::chrono::steady_clock::now();
  SIDING_RETURN_IF_ERROR(DrainGpus(gpus.driver(), {running.pid()}, kTimes));
  probe.drain = Since(start);
  start = std::chrono::steady_clock::now();
  SIDING_RETURN_IF_ERROR(RefillGpus(gpus.driver(), {running.pid()}, {}, kTimes));
  probe.refill = Since(start);
  return probe;
}

}  // namespace siding
