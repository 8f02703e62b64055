// The program of the test pods. As `pause` it keeps a pod's namespaces; as `count` it writes a number to
// stdout, again and again.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int ended_by_signal = 128 + SIGTERM;  // exit code, as of most programs

static void End(int signal_number) {
  (void)signal_number;
  _exit(ended_by_signal);
}

static void Reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(int argc, char** argv) {
  (void)argc;
  // The first process of a namespace ignores signals that it does not handle, and is the parent of orphans.
  signal(SIGTERM, End);
  signal(SIGINT, End);
  signal(SIGCHLD, Reap);
  if (strcmp(argv[0], "/pause") == 0) {
    ended_by_signal = 0;
    for (;;) pause();
  }
  for (unsigned long number = 0;; ++number) {
    printf("count %lu\n", number);
    fflush(stdout);
    usleep(100000);
  }
}
