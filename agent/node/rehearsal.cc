#include "agent/node/rehearsal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "agent/criu/criu.h"
#include "agent/os/processes.h"
#include "agent/shim/shim_process.h"
#include "agent/shim/shim_rehearse.h"
#include "agent/task/json_file.h"
#include "common/directory.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr Duration kEndPatience = std::chrono::seconds(5);

// The shim; ended by force if it has not ended by itself.
class Rehearsing {
 public:
  static absl::StatusOr<Rehearsing> Start(const std::string& shim, const std::string& folder) {
    const std::string log_path = folder + "/shim.log";
    const UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!log.valid() || !null.valid()) return ErrnoError(errno, "open " + log_path);
    const char* const argv[] = {shim.c_str(), kRehearse, folder.c_str(), nullptr};
    const pid_t pid = fork();
    if (pid < 0) return ErrnoError(errno, "fork");
    if (pid == 0) BecomeShim(argv, null.get(), log.get());
    return Rehearsing(pid);
  }
  Rehearsing(Rehearsing&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  ~Rehearsing() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    if (PollUntil([this] { return ExitCode().has_value(); }, kEndPatience)) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  // Its exit code; nullopt: it has not ended.
  std::optional<int> ExitCode() {
    int status = 0;
    if (pid_ == 0 || waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  explicit Rehearsing(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

}  // namespace

absl::Status RunRehearsal(const std::string& shim, const std::string& folder,
                          const agent::ShimRequest& request, Duration patience,
                          const std::function<bool()>& stop) {
  const std::string failed_path = folder + "/failed.json";
  SIDING_RETURN_IF_ERROR(MakeDirectories(folder));
  unlink(failed_path.c_str());
  SIDING_RETURN_IF_ERROR(WriteJsonFile(folder + "/request.json", request, 0600));
  SIDING_ASSIGN_OR_RETURN(Rehearsing rehearsing, Rehearsing::Start(shim, folder));
  std::optional<int> code;
  PollUntil([&] { return (code = rehearsing.ExitCode()) || stop(); }, patience);
  if (!code && stop()) return absl::AbortedError("the rehearsal was stopped");
  if (!code) return absl::DeadlineExceededError("the rehearsal took longer than " + FormatDuration(patience));
  if (*code == 0) return absl::OkStatus();
  const auto failed = ReadJsonFile<agent::ShimFailed>(failed_path);
  if (!failed.ok()) return absl::InternalError(absl::StrCat("the rehearsal ended with ", *code));
  return failed->image_refused() ? RefusalError(failed->message()) : absl::InternalError(failed->message());
}

}  // namespace siding
