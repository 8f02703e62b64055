/* siding-init: the first process of a task's pid namespace. Runs one command, reaps whatever is orphaned,
 * passes signals on to the command's process group and returns the command's exit code; 128 + signal number
 * if a signal ended it (the kernel lets no init die of its own signal, so the number is all it can hand on).
 *
 *   siding-init [-s FD] [-q] -- COMMAND [ARGUMENT...]
 *
 * With -s, a failure to run the command is written to FD as two ints (the stage, always 0, and errno); FD is
 * closed in every case, so that end of file means that the command runs. With -q only signals that
 * come by sigqueue(3) are passed on: senders of others send them to every process.
 *
 * Plain C and linked statically: it is part of every checkpoint, and must be the same on every node. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int kForwarded[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                 SIGALRM, SIGWINCH, SIGTSTP, SIGCONT, SIGXCPU, SIGURG};

static int ExitCode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

static void RunCommand(char** command, int status_fd, const sigset_t* mask) {
  setpgid(0, 0);
  sigprocmask(SIG_SETMASK, mask, NULL);
  execvp(command[0], command);
  const int report[2] = {0, errno};
  if (status_fd >= 0 && write(status_fd, report, sizeof report) < 0) _exit(126);
  _exit(report[1] == ENOENT ? 127 : 126);
}

int main(int argc, char** argv) {
  int status_fd = -1;
  int at = 1;
  if (at + 1 < argc && strcmp(argv[at], "-s") == 0) {
    status_fd = atoi(argv[at + 1]);
    at += 2;
  }
  const int queued_only = at < argc && strcmp(argv[at], "-q") == 0;
  at += queued_only;
  if (at < argc && strcmp(argv[at], "--") == 0) ++at;
  if (at >= argc) {
    fprintf(stderr, "usage: siding-init [-s FD] [-q] -- COMMAND [ARGUMENT...]\n");
    return 2;
  }
  if (status_fd >= 0) fcntl(status_fd, F_SETFD, FD_CLOEXEC);

  /* Blocked, and taken one by one: no signal can come between the fork and knowing the child. */
  sigset_t taken, before;
  sigemptyset(&taken);
  sigaddset(&taken, SIGCHLD);
  for (size_t i = 0; i < sizeof kForwarded / sizeof *kForwarded; ++i) sigaddset(&taken, kForwarded[i]);
  sigprocmask(SIG_BLOCK, &taken, &before);

  const pid_t child = fork();
  if (child < 0) {
    const int report[2] = {0, errno};
    if (status_fd >= 0 && write(status_fd, report, sizeof report) < 0) return 126;
    return 126;
  }
  if (child == 0) RunCommand(argv + at, status_fd, &before);
  setpgid(child, child); /* in both, so that neither order of events loses a signal */
  if (status_fd >= 0) close(status_fd);

  for (;;) {
    siginfo_t info;
    const int signal_number = sigwaitinfo(&taken, &info);
    if (signal_number < 0) continue;
    if (signal_number != SIGCHLD) {
      if (!queued_only || info.si_code == SI_QUEUE) kill(-child, signal_number);
      continue;
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == child) return ExitCode(status);
    }
  }
}
