#include "common/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/files.h"
#include "common/status.h"

extern char** environ;

namespace siding {
namespace {

constexpr int64_t kAskAgainMs = 100;

struct Pipe {
  UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// "NAME=value" of our own environment, but for those that are replaced.
std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                            int output, int errors) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
  // Our own services block signals to take them from sigwait; the program must not inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0].c_str(), &files, &attributes, Pointers(argv).data(),
                                 Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return ErrnoError(error, "start " + argv[0]);
  return pid;
}

// Appends what there is to read; closes the descriptor at its end.
void Drain(UniqueFd& fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR)) fd.Reset();
}

enum class HowRead { kWhole, kLate, kStopped };

// Until both have been closed by all processes that could write to them.
HowRead ReadBoth(UniqueFd& output, UniqueFd& errors, Duration limit, const std::function<bool()>& stop,
                 ProgramResult& result) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const int64_t most = stop ? kAskAgainMs : 60'000;
  while (output.valid() || errors.valid()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return HowRead::kLate;
    if (stop && stop()) return HowRead::kStopped;
    pollfd fds[] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
    if (poll(fds, 2, static_cast<int>(std::min<int64_t>(left.count(), most))) <= 0) continue;
    if (fds[0].revents != 0) Drain(output, result.output);
    if (fds[1].revents != 0) Drain(errors, result.errors);
  }
  return HowRead::kWhole;
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& argv, Duration limit,
                                         const std::map<std::string, std::string>& environment,
                                         const Interruption& interruption) {
  SIDING_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  SIDING_ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  SIDING_ASSIGN_OR_RETURN(const pid_t pid,
                          Spawn(argv, Environment(environment), output.write.get(), errors.write.get()));
  output.write.Reset();
  errors.write.Reset();
  ProgramResult result;
  const HowRead read = ReadBoth(output.read, errors.read, limit, interruption.stop, result);
  if (read != HowRead::kWhole) interruption.end ? interruption.end(pid) : void(kill(pid, SIGKILL));
  result.exit_code = Reap(pid);
  if (read == HowRead::kWhole) return result;
  if (read == HowRead::kStopped) return absl::AbortedError(argv[0] + " was stopped");
  return absl::DeadlineExceededError(
      absl::StrCat(argv[0], " did not end within ", FormatDuration(limit), " and was killed"));
}

absl::StatusOr<int> FollowProgram(const std::vector<std::string>& argv,
                                  const std::function<void(const std::string& line)>& visit) {
  SIDING_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  SIDING_ASSIGN_OR_RETURN(const pid_t pid, Spawn(argv, Environment({}), output.write.get(), STDERR_FILENO));
  output.write.Reset();
  std::string text;
  while (output.read.valid()) {
    Drain(output.read, text);
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      visit(text.substr(0, end));
      text.erase(0, end + 1);
    }
  }
  if (!text.empty()) visit(text);
  return Reap(pid);
}

}  // namespace siding
