#include "spank/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spank/connect.h"
#include "spank/step_wire.h"

namespace siding::spank {
namespace {

// An agent that is being restarted is back within seconds, and a gang that goes back into the queue loses
// more.
constexpr int kTriesForGang = 100;
constexpr useconds_t kTryAgainUs = 200'000;

// A connection to the agent. -1 with errno set if there is none, or if the listener is not this user's: its
// answer decides what runs as root.
int ConnectToAgent(const char* path) {
  const int fd = Connect(path, 0);
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (fd < 0 || (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid())) {
    return fd;
  }
  close(fd);
  errno = EPERM;
  return -1;
}

// In the child: only the two descriptors go along. Slurm's own stay out of the shim's reach.
[[noreturn]] void BecomeShim(const char* program, int task, int agent) {
  const int high_task = fcntl(task, F_DUPFD, 10);
  const int high_agent = fcntl(agent, F_DUPFD, 10);
  const int null = open("/dev/null", O_RDWR);
  if (high_task < 0 || high_agent < 0 || null < 0) _exit(126);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  dup2(high_task, kShimTaskFd);
  dup2(high_agent, kShimAgentFd);
  syscall(SYS_close_range, kShimAgentFd + 1, ~0U, 0);
  execl(program, program, kShimForSlurm, nullptr);
  _exit(127);
}

}  // namespace

const char* Prepare(const char* socket, const char* programs, const Registration& registration,
                    Launch& launch) {
  char shim[kMaxPath];
  char text[kMaxMessage];
  const size_t length = FormatRegistration(registration, text, sizeof text);
  launch.kind = registration.step == kBatchStep         ? kTaskOfScript
                : registration.options.keep_connections ? kTaskOfGang
                                                        : kTaskOfStep;
  const int shim_length = std::snprintf(shim, sizeof shim, "%s/siding-shim", programs);
  const int task_length = std::snprintf(launch.task_program, kMaxPath, "%s/siding-slurm-task", programs);
  if (length == 0 || shim_length >= static_cast<int>(kMaxPath) || task_length >= static_cast<int>(kMaxPath))
    return "a path or a flag is too long";
  if (access(shim, X_OK) != 0 || access(launch.task_program, X_OK) != 0)
    return "siding-shim or siding-slurm-task is missing";
  int agent = ConnectToAgent(socket);
  for (int tries = 0; agent < 0 && registration.options.keep_connections && tries < kTriesForGang; ++tries) {
    usleep(kTryAgainUs);
    agent = ConnectToAgent(socket);
  }
  if (agent < 0) return std::strerror(errno);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    close(agent);
    return "no socket pair";
  }
  const bool sent = send(pair[0], text, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length);
  const pid_t child = sent ? fork() : -1;
  if (child == 0) BecomeShim(shim, pair[1], agent);
  close(agent);
  close(pair[1]);
  if (child > 0)
    launch.task_fd = pair[0];
  else
    close(pair[0]);
  return child > 0 ? nullptr : "no process for the shim";
}

const char* Become(const Launch& launch, int argc, char** argv, char** environment) {
  char fd[16];
  std::snprintf(fd, sizeof fd, "%d", launch.task_fd);
  char** const arguments = static_cast<char**>(std::calloc(kTaskArguments + argc + 1, sizeof *arguments));
  if (arguments == nullptr) return "no memory";
  arguments[0] = const_cast<char*>(launch.task_program);
  arguments[1] = fd;
  arguments[2] = const_cast<char*>(launch.kind);
  for (int i = 0; i < argc; ++i) arguments[kTaskArguments + i] = argv[i];
  fcntl(launch.task_fd, F_SETFD, 0);
  execve(launch.task_program, arguments, environment);
  const int error = errno;
  std::free(arguments);
  close(launch.task_fd);  // the shim sees that, and goes
  return std::strerror(error);
}

}  // namespace siding::spank
