#include "spank/requeue.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace siding::spank {
namespace {

[[noreturn]] void BecomeScontrol(const char* job, bool hold, const sigset_t& mask, int complaints) {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, 0);
  dup2(null, 1);
  dup2(complaints, 2);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execlp("scontrol", "scontrol", hold ? "requeuehold" : "requeue", job, nullptr);
  _exit(127);
}

}  // namespace

Requeue JudgeRequeue(bool succeeded, const char* complaint) {
  // Another task of the step was faster.
  if (succeeded || std::strstr(complaint, "pending") != nullptr) return Requeue::kDone;
  static constexpr const char* kPassing[] = {"contact", "timed out", "Zero Bytes"};
  for (const char* const passing : kPassing) {
    if (std::strstr(complaint, passing) != nullptr) return Requeue::kFailed;
  }
  return Requeue::kRefused;
}

Requeue AskForRequeue(const char* job, bool hold, const sigset_t& mask) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Requeue::kFailed;
  const pid_t child = fork();
  if (child == 0) BecomeScontrol(job, hold, mask, ends[1]);
  close(ends[1]);
  char complaint[1024];
  size_t length = 0;
  for (ssize_t size = 1; child > 0 && length + 1 < sizeof complaint && size != 0;) {
    size = read(ends[0], complaint + length, sizeof complaint - 1 - length);
    if (size < 0 && errno != EINTR) break;
    if (size > 0) length += static_cast<size_t>(size);
  }
  complaint[length] = '\0';
  close(ends[0]);
  int status = 0;
  if (child < 0) return Requeue::kFailed;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return JudgeRequeue(WIFEXITED(status) && WEXITSTATUS(status) == 0, complaint);
}

}  // namespace siding::spank
