#include "spank/launch.h"

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "spank/step_wire.h"

namespace siding::spank {
namespace {

// One second to take the registration, one to answer: an agent that hangs must not hang the node.
constexpr timeval kPatience = {1, 0};

// A connection to the agent. -1 with errno set if there is none, or if whoever listens is not this user: what
// is started on its word runs as root.
int Connect(const char* path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
    if (peer.uid == geteuid()) return fd;
    errno = EPERM;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

const char* Register(int agent, const Registration& registration, Answer& answer) {
  char text[kMaxMessage];
  const size_t length = FormatRegistration(registration, text, sizeof text);
  if (length == 0 || send(agent, text, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length))
    return "the agent does not listen";
  const ssize_t size = recv(agent, text, sizeof text, 0);
  if (size <= 0) return "the agent does not answer";
  if (!ParseAnswer(text, static_cast<size_t>(size), answer))
    return "the agent's answer is of another version";
  if (answer.kind == AnswerKind::kRefused) return answer.reason;
  return answer.kind == AnswerKind::kAccepted ? nullptr : "the agent's answer makes no sense";
}

// In the child: only the two descriptors go along. Slurm's own stay out of the shim's reach.
[[noreturn]] void BecomeShim(const Launch& launch, int task, int agent) {
  const int high_task = fcntl(task, F_DUPFD, 10);
  const int high_agent = fcntl(agent, F_DUPFD, 10);
  const int null = open("/dev/null", O_RDWR);
  if (high_task < 0 || high_agent < 0 || null < 0) _exit(126);
  for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  dup2(high_task, kShimTaskFd);
  dup2(high_agent, kShimAgentFd);
  syscall(SYS_close_range, kShimAgentFd + 1, ~0U, 0);
  execl(launch.answer.shim, launch.answer.shim, launch.answer.folder, launch.signals, nullptr);
  _exit(127);
}

int FindLinuxproc(dl_phdr_info* object, size_t, void*) {
  return object->dlpi_name != nullptr && std::strstr(object->dlpi_name, "/proctrack_linuxproc.so") != nullptr;
}

}  // namespace

const char* SignalsOfThisSlurm() {
  return dl_iterate_phdr(FindLinuxproc, nullptr) != 0 ? kSignalsAll : kSignalsTask;
}

const char* Prepare(const char* socket, const Registration& registration, Launch& launch) {
  const int agent = Connect(socket);
  if (agent < 0) return std::strerror(errno);
  int pair[2];
  const char* problem = Register(agent, registration, launch.answer);
  if (problem == nullptr && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    problem = "no socket pair";
  if (problem == nullptr) {
    launch.signals = SignalsOfThisSlurm();
    const pid_t shim = fork();
    if (shim == 0) BecomeShim(launch, pair[1], agent);
    if (shim < 0) problem = "no process for the shim";
    close(pair[1]);
    if (shim > 0)
      launch.task_fd = pair[0];
    else
      close(pair[0]);
  }
  close(agent);
  return problem;
}

const char* Become(const Launch& launch, int argc, char** argv, char** environment) {
  char fd[16];
  char separator[] = "--";
  std::snprintf(fd, sizeof fd, "%d", launch.task_fd);
  char** const arguments = static_cast<char**>(std::calloc(kTaskArguments + argc + 1, sizeof *arguments));
  if (arguments == nullptr) return "no memory";
  arguments[0] = const_cast<char*>(launch.answer.task_path);
  arguments[1] = fd;
  arguments[2] = const_cast<char*>(launch.signals);
  arguments[3] = separator;
  for (int i = 0; i < argc; ++i) arguments[kTaskArguments + i] = argv[i];
  fcntl(launch.task_fd, F_SETFD, 0);
  execve(launch.answer.task_path, arguments, environment);
  const int error = errno;
  std::free(arguments);
  close(launch.task_fd);  // the shim sees that, and goes
  return std::strerror(error);
}

}  // namespace siding::spank
