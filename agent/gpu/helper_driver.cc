#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/gpu/answer.h"
#include "agent/gpu/gpu_driver.h"
#include "agent/gpu/protocol.h"
#include "agent/gpu/uuid.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"

namespace siding {
namespace {

using gpu::Answer;
using gpu::Call;
using gpu::Question;

// Beyond the time that the driver itself was given.
constexpr Duration kSlack = std::chrono::seconds(5);
constexpr Duration kStartTimeout = std::chrono::seconds(60);  // of a driver on a machine with many GPUs
constexpr Duration kStateTimeout = std::chrono::seconds(10);
constexpr int32_t kMostDevices = 1024;  // of one machine

// One life of the helper process.
class Helper {
 public:
  static absl::StatusOr<std::shared_ptr<Helper>> Start(const std::string& program,
                                                       const GpuLibraries& libraries) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return ErrnoError(errno, "socketpair");
    UniqueFd ours(ends[0]), its(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return ErrnoError(errno, "fork");
    if (pid == 0) {
      // Only what may be called between fork and exec.
      if (dup2(its.get(), gpu::kSocket) < 0) _exit(127);
      if (its.get() == gpu::kSocket) fcntl(gpu::kSocket, F_SETFD, 0);
      execl(program.c_str(), program.c_str(), libraries.cuda.c_str(), libraries.nvml.c_str(), nullptr);
      _exit(127);
    }
    return std::shared_ptr<Helper>(new Helper(pid, std::move(ours)));
  }

  ~Helper() {
    End();
    reader_.join();
    // One that hangs in the kernel is not waited for: all other questions would wait.
    std::thread([pid = pid_] { waitpid(pid, nullptr, 0); }).detach();
  }

  // Nothing is asked after this, and what has been asked is answered "ended".
  void End() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    kill(pid_, SIGKILL);
    shutdown(socket_.get(), SHUT_RDWR);
  }
  bool ended() {
    MutexLock lock(mutex_);
    return ended_;
  }

  absl::StatusOr<Answer> Ask(Question question, Duration timeout) {
    MutexLock lock(mutex_);
    if (!answered_) timeout = std::max(timeout, kStartTimeout);
    question.id = ++last_id_;
    answers_.emplace(question.id, std::nullopt);
    if (!ended_ && send(socket_.get(), &question, sizeof question, MSG_NOSIGNAL) < 0) ended_ = true;
    const bool done = changed_.WaitFor(mutex_, timeout, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_ || answers_.at(question.id).has_value();
    });
    const std::optional<Answer> answer = std::exchange(answers_.at(question.id), std::nullopt);
    answers_.erase(question.id);
    if (answer) return *answer;
    if (!done) return absl::DeadlineExceededError("the GPU driver did not answer");
    return absl::UnavailableError("the GPU helper ended");
  }

 private:
  Helper(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {
    reader_ = std::thread([this] { Read(); });
  }

  void Read() {
    for (;;) {
      Answer answer{};
      const ssize_t n = recv(socket_.get(), &answer, sizeof answer, 0);
      if (n < 0 && errno == EINTR) continue;
      MutexLock lock(mutex_);
      if (n != static_cast<ssize_t>(sizeof answer)) {
        ended_ = true;
        changed_.NotifyAll();
        return;
      }
      answered_ = true;
      // The caller may have stopped waiting.
      if (auto it = answers_.find(answer.id); it != answers_.end()) it->second = answer;
      changed_.NotifyAll();
    }
  }

  const pid_t pid_;
  const UniqueFd socket_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  // To the questions with a waiting caller.
  std::map<uint64_t, std::optional<Answer>> answers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;  // anything: the driver has started
  std::thread reader_;
};

class HelperDriver final : public GpuDriver {
 public:
  HelperDriver(std::string program, GpuLibraries libraries)
      : program_(std::move(program)), libraries_(std::move(libraries)) {}

  absl::StatusOr<GpuState> State(pid_t pid) override {
    SIDING_ASSIGN_OR_RETURN(const Answer answer, Ask({.call = Call::kState, .pid = pid}, kStateTimeout));
    // Of a process that has not called the driver it says one of these.
    if (answer.result == cuda::kInvalidValue || answer.result == cuda::kNotInitialized)
      return GpuState::kUnused;
    SIDING_RETURN_IF_ERROR(gpu::StatusOf(answer, "state", pid));
    switch (answer.state) {
      case cuda::kRunning:
        return GpuState::kRunning;
      case cuda::kLocked:
        return GpuState::kLocked;
      case cuda::kCheckpointed:
        return GpuState::kCheckpointed;
      default:
        return GpuState::kFailed;
    }
  }

  absl::Status Lock(pid_t pid, Duration timeout) override {
    const int64_t ms = std::clamp<int64_t>(timeout.count() / 1000, 1, 3'600'000);
    Question question{.call = Call::kLock, .pid = pid, .timeout_ms = static_cast<uint32_t>(ms)};
    return Do(question, "lock", timeout + kSlack);
  }
  absl::Status Checkpoint(pid_t pid, Duration timeout) override {
    return Do({.call = Call::kCheckpoint, .pid = pid}, "checkpoint", timeout);
  }
  absl::Status Restore(pid_t pid, const std::vector<GpuMove>& moves, Duration timeout) override {
    Question question{.call = Call::kRestore, .pid = pid};
    if (moves.size() > gpu::kMostPairs) {
      return absl::InvalidArgumentError(
          absl::StrCat("at most ", gpu::kMostPairs, " GPUs can be exchanged for others, not ", moves.size()));
    }
    for (const GpuMove& move : moves) {
      cuda::GpuPair& pair = question.pair[question.pairs++];
      SIDING_ASSIGN_OR_RETURN(pair.before, ParseGpuUuid(move.before));
      SIDING_ASSIGN_OR_RETURN(pair.after, ParseGpuUuid(move.after));
    }
    return Do(question, "restore", timeout);
  }
  absl::Status Unlock(pid_t pid, Duration timeout) override {
    return Do({.call = Call::kUnlock, .pid = pid}, "unlock", timeout);
  }

  absl::StatusOr<std::vector<GpuDevice>> Devices() override {
    std::vector<GpuDevice> devices;
    for (int index = 0, count = 1; index < count; ++index) {
      SIDING_ASSIGN_OR_RETURN(const Answer answer, Ask({.call = Call::kDevice, .pid = index}, kStateTimeout));
      if (answer.result != 0) return absl::UnavailableError(gpu::TextOf(answer));
      count = std::min(answer.state, kMostDevices);
      if (index < count) devices.push_back(gpu::DeviceOf(answer));
    }
    return devices;
  }

 private:
  // Questions about devices have a helper of their own: one that hangs must not take drains with it.
  absl::StatusOr<Answer> Ask(const Question& question, Duration timeout) {
    const bool devices = question.call == Call::kDevice;
    std::shared_ptr<Helper> helper;
    {
      MutexLock lock(mutex_);
      std::shared_ptr<Helper>& slot = devices ? inspector_ : helper_;
      if (slot == nullptr || slot->ended()) {
        SIDING_ASSIGN_OR_RETURN(slot,
                                Helper::Start(program_, {devices ? "" : libraries_.cuda, libraries_.nvml}));
      }
      helper = slot;
    }
    auto answer = helper->Ask(question, timeout);
    if (absl::IsDeadlineExceeded(answer.status())) {
      spdlog::error("the GPU driver has not answered for {}; its helper is given up",
                    FormatDuration(timeout));
      helper->End();
    }
    return answer;
  }

  absl::Status Do(const Question& question, const char* what, Duration timeout) {
    SIDING_ASSIGN_OR_RETURN(const Answer answer, Ask(question, timeout));
    return gpu::StatusOf(answer, what, question.pid);
  }

  const std::string program_;
  const GpuLibraries libraries_;
  Mutex mutex_;
  std::shared_ptr<Helper> helper_ ABSL_GUARDED_BY(mutex_);
  // Has no driver for programs, only the one for devices.
  std::shared_ptr<Helper> inspector_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string ToString(GpuState state) {
  switch (state) {
    case GpuState::kUnused:
      return "unused";
    case GpuState::kRunning:
      return "running";
    case GpuState::kLocked:
      return "locked";
    case GpuState::kCheckpointed:
      return "checkpointed";
    case GpuState::kFailed:
      return "failed";
  }
  return "?";
}

std::unique_ptr<GpuDriver> NewGpuDriver(const std::string& helper, GpuLibraries libraries) {
  return std::make_unique<HelperDriver>(helper, std::move(libraries));
}

}  // namespace siding
