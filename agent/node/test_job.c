/* A job for the tests: counts, one line a step, and checks a pattern in its memory at every step.
 *
 *   test_job [OPTION...] [STEPS [MILLISECONDS]]
 *     -a          read a byte of its own program asynchronously (io_submit) at every step
 *     -c          make a TCP connection to itself, and use it in the last step
 *     -o PORT     make one to that port of this machine, and await what it sends back in the last step
 *     -d WHICH    do the rest in a child, and trace its first ("main") or another one of its threads
 * ("thread"), as a debugger does -e FILE     continue until there is FILE, not for STEPS, and make one step
 * more; FILE is looked for, never opened -q SOCKET   have a Unix socket for datagrams, SOCKET, and read none
 * -m MIB      memory to fill with the pattern (default 4) -n FOLDER
 * use a socket with a name there, and a file that was removed, at every step -p PIPE     make the named pipe
 * PIPE, keep a text in it, and look for it at every step -r FILE     keep FILE open for reading -u open an
 * io_uring first; exits with 77 if the kernel forbids it -g          use a fake GPU: the file
 * $FAKE_GPU_STATES/PID, in which the fake driver keeps this process's state; a step is done only while that
 * is 0 (running) -s MARKER   on SIGUSR1 write MARKER ("-": none, exit with 0) -x CODE     exit code at the
 * end
 *
 * Exits with 99 if the pattern is damaged, with 97 if what -a, -c, -n, -o, -p or -q have made is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t save_ordered;
static void OnSave(int signal_number) {
  (void)signal_number;
  save_ordered = 1;
}

static int Unlocked(const char* file) {
  char state = '0';
  const int fd = open(file, O_RDONLY);
  if (fd >= 0) {
    if (read(fd, &state, 1) < 0) state = '?';
    close(fd);
  }
  return state == '0';
}

// Of -n and -p.
static int client = -1, server = -1, removed = -1, named_pipe = -1;

static int HasNames(void) { return removed >= 0; }

static int MakeNames(const char* folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char name[4096];
  snprintf(address.sun_path, sizeof address.sun_path, "%s/listener", folder);
  snprintf(name, sizeof name, "%s/removed", folder);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  client = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
      connect(client, (struct sockaddr*)&address, sizeof address) != 0 ||
      (server = accept(listener, NULL, NULL)) < 0)
    return 0;
  removed = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  return removed >= 0 && write(removed, "text", 4) == 4 && unlink(name) == 0;
}

// With a text in it.
static int MakePipe(const char* name) {
  return mkfifo(name, 0600) == 0 && (named_pipe = open(name, O_RDWR)) >= 0 && write(named_pipe, "x", 1) == 1;
}

// Whose datagrams are never read.
static int MakeDeafSocket(const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
  return bind(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr*)&address, sizeof address) == 0;
}

static int PipeWorks(void) {
  char text = '?';
  return read(named_pipe, &text, 1) == 1 && text == 'x' && write(named_pipe, "x", 1) == 1;
}

static int NamesWork(void) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  char text[4] = "";
  return write(client, "x", 1) == 1 && read(server, text, 1) == 1 && *text == 'x' &&
         getsockopt(server, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid() &&
         pread(removed, text, 4, 0) == 4 && memcmp(text, "text", 4) == 0;
}

// Of -a.
static aio_context_t ring;
static int own_program = -1;

static int MakeRing(const char* program) {
  own_program = open(program, O_RDONLY);
  return own_program >= 0 && syscall(SYS_io_setup, 4, &ring) == 0;
}

static int RingWorks(void) {
  char text = 0;
  struct iocb read_one = {.aio_fildes = (uint32_t)own_program,
                          .aio_lio_opcode = IOCB_CMD_PREAD,
                          .aio_buf = (uint64_t)(uintptr_t)&text,
                          .aio_nbytes = 1};
  struct iocb* all = &read_one;
  struct io_event event;
  return syscall(SYS_io_submit, ring, 1, &all) == 1 &&
         syscall(SYS_io_getevents, ring, 1, 1, &event, NULL) == 1 && event.res == 1 && text == 0x7f;
}

// Of -c and -l.
static int tcp_client = -1, tcp_server = -1;

static int Connect(int accepted) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  tcp_client = socket(AF_INET, SOCK_STREAM, 0);
  return bind(listener, (struct sockaddr*)&address, size) == 0 && listen(listener, 1) == 0 &&
         getsockname(listener, (struct sockaddr*)&address, &size) == 0 &&
         connect(tcp_client, (struct sockaddr*)&address, size) == 0 &&
         (!accepted || (tcp_server = accept(listener, NULL, NULL)) >= 0);
}

static int ConnectOut(int port) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
  tcp_client = tcp_server = socket(AF_INET, SOCK_STREAM, 0);
  return connect(tcp_client, (struct sockaddr*)&address, sizeof address) == 0;
}

static int ConnectionWorks(void) {
  char text = 0;
  return write(tcp_client, "x", 1) == 1 && read(tcp_server, &text, 1) == 1 && text == 'x';
}

static int thread_told[2];

static void* TellThread(void* none) {
  const pid_t thread = (pid_t)syscall(SYS_gettid);
  if (write(thread_told[1], &thread, sizeof thread) != sizeof thread) _exit(94);
  for (;;) pause();
  return none;
}

// Returns in the child when it is traced; in the debugger never.
static void TraceTheRest(int only_a_thread) {
  int traced[2];
  if (pipe(traced) != 0 || pipe(thread_told) != 0) exit(94);
  const pid_t child = fork();
  if (child == 0) {
    char nothing;
    pthread_t thread;
    close(traced[1]);
    if (only_a_thread && pthread_create(&thread, NULL, TellThread, NULL) != 0) exit(94);
    if (read(traced[0], &nothing, 1) != 0) exit(94);
    return;
  }
  pid_t thread = child;
  if (only_a_thread && read(thread_told[0], &thread, sizeof thread) != sizeof thread) exit(94);
  if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) exit(94);
  close(traced[1]);
  for (int status;;) {
    const pid_t seen = waitpid(-1, &status, __WALL);
    if (seen == child && WIFEXITED(status)) exit(WEXITSTATUS(status));
    if (seen == child && WIFSIGNALED(status)) exit(94);
    if (!WIFSTOPPED(status)) continue;
    if (status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) != SIGTRAP)
      ptrace(PTRACE_LISTEN, seen, NULL, NULL);
    else
      ptrace(PTRACE_CONT, seen, NULL, status >> 16 ? 0 : (long)WSTOPSIG(status));
  }
}

int main(int argc, char** argv) {
  long mib = 4;
  int exit_code = 0;
  const char* marker = NULL;
  const char* end = NULL;
  char gpu[4096] = "";
  for (int option; (option = getopt(argc, argv, "acd:e:lm:n:o:p:q:r:ugs:x:")) >= 0;) {
    if (option == 'a' && !MakeRing("/proc/self/exe")) return 97;
    if ((option == 'c' || option == 'l') && !Connect(option == 'c')) return 97;
    if (option == 'd') TraceTheRest(strcmp(optarg, "thread") == 0);
    if (option == 'e') end = optarg;
    if (option == 'm') mib = atol(optarg);
    if (option == 'n' && !MakeNames(optarg)) return 97;
    if (option == 'o' && !ConnectOut(atoi(optarg))) return 97;
    if (option == 'p' && !MakePipe(optarg)) return 97;
    if (option == 'q' && !MakeDeafSocket(optarg)) return 97;
    if (option == 'r' && open(optarg, O_RDONLY) < 0) return 98;
    if (option == 's') marker = optarg;
    if (option == 'g') {
      snprintf(gpu, sizeof gpu, "%s/%d", getenv("FAKE_GPU_STATES"), (int)getpid());
      const int fd = open(gpu, O_WRONLY | O_CREAT | O_TRUNC, 0666);
      if (fd < 0 || write(fd, "0", 1) != 1) return 95;
      close(fd);
    }
    if (option == 'x') exit_code = atoi(optarg);
    if (option == 'u') {
      struct io_uring_params parameters;
      memset(&parameters, 0, sizeof parameters);
      if (syscall(SYS_io_uring_setup, 4, &parameters) < 0) return 77;
    }
  }
  if (marker) signal(SIGUSR1, OnSave);
  const long steps = optind < argc ? atol(argv[optind]) : 0;
  const long milliseconds = optind + 1 < argc ? atol(argv[optind + 1]) : 2;
  const size_t words = (size_t)mib << 17;
  uint64_t* memory = malloc(words * 8);
  for (size_t i = 0; i < words; ++i) memory[i] = i * 0x9e3779b97f4a7c15u;
  int last = 0;
  for (long step = 1; end ? !last : step <= steps; ++step) {
    last = end && access(end, F_OK) == 0;
    for (size_t i = 0; i < words; i += 509) {
      if (memory[i] != i * 0x9e3779b97f4a7c15u) return 99;
    }
    if (HasNames() && !NamesWork()) return 97;
    if (own_program >= 0 && !RingWorks()) return 97;
    if (last && tcp_server >= 0 && !ConnectionWorks()) return 97;
    while (*gpu && !Unlocked(gpu)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    char line[32];
    const int length = snprintf(line, sizeof line, "%ld\n", step);
    if (write(1, line, (size_t)length) != length) return 97;
    if (save_ordered) {
      if (strcmp(marker, "-") == 0) return 0;
      const int fd = open(marker, O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (fd < 0 || write(fd, line, (size_t)length) != length) return 96;
      close(fd);
      save_ordered = 0;
    }
    const struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&pause, NULL);
  }
  return exit_code;
}
