/* A job for the tests: makes one kind of kernel state, says so, and when the test wants it looks whether the
 * state is still there.
 *
 *   siding-test-state STATE GATE
 *
 * Writes "made", waits until there is the file GATE, and ends with 0 if the state is as it was, with 1 and a
 * line that begins with "lost" if not; with 77 and a line "cannot ..." if this machine does not have it. Its
 * folder for files is that of GATE. The states: docs/admin/checkpoints.md, "What the kernel keeps". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(call) Must((long)(call), #call)

static const char* gate;
static char folder[4096], program[4096];

static int Must(long result, const char* what) {
  if (result >= 0) return (int)result;
  printf("cannot %s: %s\n", what, strerror(errno));
  fflush(stdout);
  _exit(77);
}

static char* InFolder(const char* name) {
  static char path[8192];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* Without the vdso, which may be gone. */
static void Nap(void) {
  const struct timespec pause = {0, 10000000};
  syscall(SYS_nanosleep, &pause, NULL);
}

static void AwaitGate(void) {
  if (write(1, "made\n", 5) != 5) _exit(1);
  while (syscall(SYS_access, gate, F_OK) != 0) Nap();
}

/* The exit code. */
static int Kept(int kept, const char* seen) {
  char line[300];
  const int size = snprintf(line, sizeof line, "%s %s\n", kept ? "kept" : "lost", seen);
  if (write(1, line, (size_t)size) != size) return 1;
  return !kept;
}

/* Descriptors of the state. */
static int a = -1, b = -1;

static volatile int rings;
static void OnRing(int number) {
  (void)number;
  ++rings;
}

/* Of the state's second thread: whether it is ready, what it is to do, what it has seen. */
static volatile int go, done, tok;
static int tfd = -1;
static char tcwd[4096];

struct sattr {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t prio;
  uint64_t rt, dl, per;
};

static void* StatThread(void* x) {
  a = MUST(open("/proc/thread-self/stat", O_RDONLY));
  go = 1;
  while (!done) Nap();
  return x;
}
static void* Lead(void* x) {
  for (char stat[200] = "", file[40]; strstr(stat, ") Z ") == NULL; Nap()) {
    snprintf(file, sizeof file, "/proc/%d/stat", (int)getpid());
    const int fd = MUST(open(file, O_RDONLY));
    MUST(read(fd, stat, sizeof stat - 1));
    close(fd);
  }
  AwaitGate();
  exit(Kept(1, ""));
  return x;
}
static void* FsThread(void* x) {
  MUST(unshare(CLONE_FS));
  MUST(mkdir(InFolder("thread"), 0755));
  MUST(chdir(InFolder("thread")));
  go = 1;
  while (!done) Nap();
  tok = getcwd(tcwd, sizeof tcwd) != NULL;
  return x;
}
static void* FilesThread(void* x) {
  MUST(unshare(CLONE_FILES));
  tfd = MUST(open("/dev/null", O_RDONLY));
  go = 1;
  while (!done) Nap();
  tok = fcntl(tfd, F_GETFD) >= 0;
  return x;
}
static void* UidThread(void* x) {
  MUST(syscall(SYS_setresuid, 65534, 65534, 65534));
  go = 1;
  while (!done) Nap();
  tok = syscall(SYS_getuid) == 65534;
  return x;
}
static void* NsThread(void* x) {
  MUST(unshare(CLONE_NEWUTS));
  go = 1;
  while (!done) Nap();
  return x;
}

/* In namespaces of its own, or its child is. */
static int InNs(int namespaces, int forks) {
  MUST(unshare(namespaces));
  if (!forks) {
    AwaitGate();
    return Kept(1, "");
  }
  const pid_t child = fork();
  if (child == 0) {
    AwaitGate();
    _exit(Kept(1, ""));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}

static void UnixDgram(int named_sender) {
  struct sockaddr_un to = {.sun_family = AF_UNIX}, from = {.sun_family = AF_UNIX};
  strcpy(to.sun_path, "receiver");
  strcpy(from.sun_path, "sender");
  a = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
  b = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
  MUST(bind(a, (void*)&to, sizeof to));
  if (named_sender) MUST(bind(b, (void*)&from, sizeof from));
  MUST(sendto(b, "x", 1, 0, (void*)&to, sizeof to));
}

static int VdsoUnmapped(void) {
  FILE* f = fopen("/proc/self/maps", "r");
  char l[500];
  unsigned long x, y;
  while (fgets(l, sizeof l, f))
    if (strstr(l, "[vdso]")) sscanf(l, "%lx-%lx", &x, &y);
  fclose(f);
  MUST(munmap((void*)x, y - x));
  AwaitGate();
  return Kept(1, "");
}

static int ThreadProcFile(void) {
  pthread_t t;
  pthread_create(&t, 0, StatThread, 0);
  while (!go) Nap();
  char s[100];
  AwaitGate();
  done = 1;
  lseek(a, 0, 0);
  return Kept(read(a, s, 100) > 0, "");
}

static int ProcFolder(void) {
  a = MUST(open("/proc/self", O_RDONLY | O_DIRECTORY));
  AwaitGate();
  int s = openat(a, "stat", O_RDONLY);
  return Kept(s >= 0, "");
}

static int ProcWorkingFolder(void) {
  MUST(chdir("/proc/self"));
  AwaitGate();
  return Kept(access("stat", 0) == 0, "");
}

static int MemfdProgram(void) {
  if (getenv("IN_MEMFD")) {
    AwaitGate();
    return Kept(1, "");
  }
  int s = MUST(open(program, O_RDONLY));
  int d = MUST(memfd_create("prog", 0));
  char buf[65536];
  ssize_t n;
  while ((n = read(s, buf, sizeof buf)) > 0) write(d, buf, n);
  setenv("IN_MEMFD", "1", 1);
  char fd[40];
  sprintf(fd, "/proc/self/fd/%d", d);
  fcntl(d, F_SETFD, FD_CLOEXEC);
  MUST(execl(fd, "x", "memfd_program", gate, NULL));
  return 1;
}

static int UserNamespace(void) { return InNs(CLONE_NEWUSER, 0); }

static int PidNamespace(void) { return InNs(CLONE_NEWPID, 1); }

static int PidNamespaceForChildren(void) { return InNs(CLONE_NEWPID, 0); }

static int NetworkNamespace(void) { return InNs(CLONE_NEWNET, 0); }

static int ThreadNamespace(void) {
  pthread_t t;
  pthread_create(&t, 0, NsThread, 0);
  while (!go) Nap();
  AwaitGate();
  done = 1;
  pthread_join(t, 0);
  return Kept(1, "");
}

static int MessageQueueOpen(void) {
  struct mq_attr t = {.mq_maxmsg = 4, .mq_msgsize = 8};
  a = MUST(mq_open("/q", O_RDWR | O_CREAT | O_EXCL, 0600, &t));
  AwaitGate();
  return Kept(mq_send(a, "x", 1, 0) == 0, "");
}

static int MessageQueueClosed(void) {
  struct mq_attr t = {.mq_maxmsg = 4, .mq_msgsize = 8};
  a = MUST(mq_open("/q", O_RDWR | O_CREAT | O_EXCL, 0600, &t));
  mq_send(a, "x", 1, 0);
  mq_close(a);
  AwaitGate();
  return Kept(mq_open("/q", O_RDWR) >= 0, "");
}

static int ZombieLeader(void) {
  pthread_t t;
  pthread_create(&t, 0, Lead, 0);
  pthread_exit(0);
}

static int UdpQueued(void) {
  struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t l = sizeof s;
  a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  MUST(bind(a, (void*)&s, l));
  getsockname(a, (void*)&s, &l);
  MUST(sendto(a, "x", 1, 0, (void*)&s, l));
  AwaitGate();
  char c;
  return Kept(recv(a, &c, 1, MSG_DONTWAIT) == 1, "");
}

static int InotifyQueued(void) {
  a = MUST(inotify_init1(IN_NONBLOCK));
  MUST(inotify_add_watch(a, folder, IN_CREATE));
  close(MUST(open(InFolder("made"), O_CREAT | O_RDWR, 0644)));
  AwaitGate();
  char c[500];
  ssize_t n = read(a, c, 500);
  struct inotify_event* e = (void*)c;
  return Kept(n > 0 && !strcmp(e->name, "made"), "");
}

static int UnixSender(void) {
  UnixDgram(1);
  AwaitGate();
  char c;
  struct sockaddr_un s = {0};
  socklen_t l = sizeof s;
  ssize_t n = recvfrom(a, &c, 1, MSG_DONTWAIT, (void*)&s, &l);
  char w[300];
  sprintf(w, "n=%zd from '%s'", n, l > 2 ? s.sun_path : "");
  return Kept(n == 1 && l > 2 && strstr(s.sun_path, "sender") != 0, w);
}

static int UnixCredentialsQueued(void) {
  int p[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
  int on = 1;
  setsockopt(p[1], SOL_SOCKET, SO_PASSCRED, &on, 4);
  write(p[0], "x", 1);
  AwaitGate();
  char c, ctl[100];
  struct iovec v = {&c, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = 100};
  ssize_t n = recvmsg(p[1], &m, MSG_DONTWAIT);
  struct cmsghdr* h = CMSG_FIRSTHDR(&m);
  struct ucred* u = h ? (void*)CMSG_DATA(h) : 0;
  char w[100];
  sprintf(w, "n=%zd pid %d me %d", n, u ? u->pid : -1, getpid());
  return Kept(n == 1 && u && u->pid == getpid(), w);
}

static int TcpBacklog(void) {
  struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t l = sizeof s;
  a = MUST(socket(AF_INET, SOCK_STREAM, 0));
  MUST(bind(a, (void*)&s, l));
  MUST(listen(a, 4));
  getsockname(a, (void*)&s, &l);
  b = MUST(socket(AF_INET, SOCK_STREAM, 0));
  MUST(connect(b, (void*)&s, l));
  write(b, "x", 1);
  AwaitGate();
  fcntl(a, F_SETFL, O_NONBLOCK);
  int c = accept(a, 0, 0);
  char x;
  return Kept(c >= 0 && read(c, &x, 1) == 1, "");
}

static int SemaphoreUndo(void) {
  const int id = MUST(semget(IPC_PRIVATE, 1, 0600));
  MUST(semctl(id, 0, SETVAL, 1));
  const pid_t child = fork();
  if (child == 0) {
    struct sembuf take = {0, -1, SEM_UNDO};
    MUST(semop(id, &take, 1));
    for (;;) pause();
  }
  while (semctl(id, 0, GETVAL) != 0) Nap();
  AwaitGate();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return Kept(semctl(id, 0, GETVAL) == 1, "");
}

static int Multicast(void) {
  struct ip_mreqn m = {.imr_multiaddr.s_addr = inet_addr("239.1.2.3"),
                       .imr_address.s_addr = htonl(INADDR_LOOPBACK)};
  a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
  socklen_t l = sizeof s;
  MUST(bind(a, (void*)&s, l));
  getsockname(a, (void*)&s, &l);
  MUST(setsockopt(a, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m));
  AwaitGate();
  int r = setsockopt(a, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof m);
  return Kept(r < 0 && errno == EADDRINUSE, "");
}

static int Multicast6(void) {
  struct ipv6_mreq m = {.ipv6mr_interface = 1};
  inet_pton(AF_INET6, "ff02::1234", &m.ipv6mr_multiaddr);
  a = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
  struct sockaddr_in6 s = {.sin6_family = AF_INET6};
  MUST(bind(a, (void*)&s, sizeof s));
  MUST(setsockopt(a, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof m));
  AwaitGate();
  int r = setsockopt(a, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof m);
  return Kept(r < 0 && errno == EADDRINUSE, "");
}

static int ThreadWorkingFolder(void) {
  pthread_t t;
  pthread_create(&t, 0, FsThread, 0);
  while (!go) Nap();
  AwaitGate();
  done = 1;
  pthread_join(t, 0);
  return Kept(strstr(tcwd, "/thread") != 0, tcwd);
}

static int ThreadDescriptors(void) {
  pthread_t t;
  pthread_create(&t, 0, FilesThread, 0);
  while (!go) Nap();
  AwaitGate();
  done = 1;
  pthread_join(t, 0);
  return Kept(tok, "");
}

static int CgroupFile(void) {
  FILE* cgroups = fopen("/proc/self/cgroup", "r");
  char line[4096], name[9000];
  while (a < 0 && cgroups && fgets(line, sizeof line, cgroups)) {  // "4:memory:/siding/n1/7"
    line[strcspn(line, "\n")] = '\0';
    char* controllers = strchr(line, ':') + 1;
    char* path = strchr(controllers, ':');
    *path++ = '\0';
    if (path[1] == '\0') continue;
    snprintf(name, sizeof name, "/sys/fs/cgroup/%s%s/cgroup.procs", controllers, path);
    if (*controllers == '\0') snprintf(name, sizeof name, "/sys/fs/cgroup%s/cgroup.procs", path);
    a = open(name, O_RDONLY);
    snprintf(name, sizeof name, "/sys/fs/cgroup/unified%s/cgroup.procs", path);
    if (a < 0 && *controllers == '\0') a = open(name, O_RDONLY);
  }
  MUST(a);
  AwaitGate();
  char text[10];
  return Kept(read(a, text, sizeof text) >= 0, "");
}

static int DeadlineScheduling(void) {
  struct sattr s = {.size = 48, .policy = 6, .rt = 1000000, .dl = 10000000, .per = 10000000};
  MUST(syscall(SYS_sched_setattr, 0, &s, 0));
  AwaitGate();
  return Kept(sched_getscheduler(0) == 6, "");
}

static int Personality(void) {
  MUST(personality(PER_LINUX32));
  AwaitGate();
  return Kept(personality(0xffffffff) == PER_LINUX32, "");
}

static int AddressRandomization(void) {
  MUST(personality(ADDR_NO_RANDOMIZE));
  AwaitGate();
  return Kept(personality(0xffffffff) == ADDR_NO_RANDOMIZE, "");
}

static int EventfdSemaphore(void) {
  a = MUST(syscall(SYS_eventfd2, 3, 1));
  AwaitGate();
  uint64_t v;
  return Kept(read(a, &v, 8) == 8 && v == 1, "");
}

/* What personality(2) says of memory that may be read is what mmap() does. */
static int ReadImpliesExec(void) {
  MUST(personality(READ_IMPLIES_EXEC));
  AwaitGate();
  return Kept(personality(0xffffffff) == READ_IMPLIES_EXEC, "");
}

static int NotDumpable(void) {
  MUST(prctl(PR_SET_DUMPABLE, 0));
  AwaitGate();
  return Kept(prctl(PR_GET_DUMPABLE) == 0, "");
}

/* Of a terminal whose last group in the foreground has ended, as between two commands of a shell. */
static int ForegroundEnded(void) {
  a = MUST(posix_openpt(O_RDWR | O_NOCTTY));
  MUST(unlockpt(a));
  const pid_t leader = MUST(fork());
  if (leader == 0) {
    setsid();
    signal(SIGTTOU, SIG_IGN);
    b = MUST(open(ptsname(a), O_RDWR));
    const pid_t last = MUST(fork());
    if (last == 0) {
      setpgid(0, 0);
      _exit(tcsetpgrp(b, getpid()) != 0);
    }
    int status = -1;
    waitpid(last, &status, 0);
    if (status != 0) _exit(2);
    AwaitGate();
    const pid_t group = tcgetpgrp(b);
    _exit(group > 0 && kill(-group, 0) != 0 && errno == ESRCH && tcsetpgrp(b, getpid()) == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(leader, &status, 0);
  return Kept(status == 0, "");
}

/* A process that is not the first of its session, on the session's terminal: its exit code. */
static int OnTerminal(int (*look)(void)) {
  a = MUST(posix_openpt(O_RDWR | O_NOCTTY));
  MUST(unlockpt(a));
  int status = -1;
  const pid_t leader = MUST(fork());
  if (leader == 0) {
    setsid();
    b = MUST(open(ptsname(a), O_RDWR));
    const pid_t other = MUST(fork());
    if (other == 0) _exit(look());
    waitpid(other, &status, 0);
    _exit(status != 0);
  }
  waitpid(leader, &status, 0);
  return Kept(status == 0, "");
}

static int SetForeground(void) {
  setpgid(0, 0);
  signal(SIGTTOU, SIG_IGN);
  MUST(tcsetpgrp(b, getpid()));
  AwaitGate();
  return tcsetpgrp(b, getpid()) != 0;
}
static int ShellWithJobs(void) { return OnTerminal(SetForeground); }

static int OpenTerminal(void) {
  AwaitGate();
  return open("/dev/tty", O_RDWR) < 0;
}
static int ControllingTerminal(void) { return OnTerminal(OpenTerminal); }

static int PacketPipe(void) {
  int p[2];
  MUST(pipe2(p, O_DIRECT));
  write(p[1], "ab", 2);
  write(p[1], "cd", 2);
  AwaitGate();
  char c[10];
  return Kept(read(p[0], c, 10) == 2, "");
}

static int Mptcp(void) {
  a = MUST(socket(AF_INET, SOCK_STREAM, 262));
  struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  MUST(bind(a, (void*)&s, sizeof s));
  MUST(listen(a, 3));
  AwaitGate();
  int p = 0;
  socklen_t l = 4;
  getsockopt(a, SOL_SOCKET, SO_PROTOCOL, &p, &l);
  char w[50];
  sprintf(w, "%d", p);
  return Kept(p == 262, w);
}

static int Vsock(void) {
  a = MUST(socket(40, SOCK_STREAM, 0));
  AwaitGate();
  return Kept(1, "");
}

static int Userfaultfd(void) {
  a = MUST(syscall(SYS_userfaultfd, O_CLOEXEC | 1));
  AwaitGate();
  return Kept(1, "");
}

static int LandlockRules(void) {
  struct landlock_ruleset_attr r = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_DIR};
  a = MUST(syscall(SYS_landlock_create_ruleset, &r, sizeof r, 0));
  AwaitGate();
  return Kept(1, "");
}

static int SecretMemory(void) {
  a = MUST(syscall(447, 0));
  ftruncate(a, 4096);
  char* p = mmap(0, 4096, 3, MAP_SHARED, a, 0);
  if (p == MAP_FAILED) MUST(-1);
  strcpy(p, "s");
  AwaitGate();
  return Kept(*p == 's', "");
}

static int UdpSocket(void) {
  struct sockaddr_in s = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t l = sizeof s;
  a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  MUST(bind(a, (void*)&s, l));
  getsockname(a, (void*)&s, &l);
  AwaitGate();
  MUST(sendto(a, "x", 1, 0, (void*)&s, l));
  char c;
  return Kept(recv(a, &c, 1, MSG_DONTWAIT) == 1, "");
}

static int InotifyWatch(void) {
  mkdir(InFolder("sub"), 0755);
  a = MUST(inotify_init1(IN_NONBLOCK));
  MUST(inotify_add_watch(a, InFolder("sub"), IN_CREATE));
  AwaitGate();
  close(MUST(open(InFolder("sub/made"), O_CREAT | O_RDWR, 0644)));
  char c[500];
  ssize_t n = read(a, c, 500);
  struct inotify_event* e = (void*)c;
  return Kept(n > 0 && !strcmp(e->name, "made"), "");
}

static int UnixPairQueued(void) {
  int p[2];
  MUST(socketpair(AF_UNIX, SOCK_DGRAM, 0, p));
  write(p[0], "x", 1);
  AwaitGate();
  char c;
  return Kept(recv(p[1], &c, 1, MSG_DONTWAIT) == 1, "");
}

static int UnixDescriptorQueued(void) {
  int p[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
  int e = MUST(open(InFolder("f"), O_CREAT | O_RDWR, 0644));
  char c = 'x', ctl[100] = {0};
  struct iovec v = {&c, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = CMSG_SPACE(4)};
  struct cmsghdr* h = CMSG_FIRSTHDR(&m);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(4);
  memcpy(CMSG_DATA(h), &e, 4);
  MUST(sendmsg(p[0], &m, 0));
  AwaitGate();
  m.msg_controllen = 100;
  ssize_t n = recvmsg(p[1], &m, MSG_DONTWAIT);
  h = CMSG_FIRSTHDR(&m);
  return Kept(n == 1 && h && h->cmsg_type == SCM_RIGHTS, "");
}

static int Semaphores(void) {
  int id = MUST(semget(IPC_PRIVATE, 1, 0600));
  semctl(id, 0, SETVAL, 3);
  struct sembuf o = {0, -1, 0};
  semop(id, &o, 1);
  AwaitGate();
  return Kept(semctl(id, 0, GETVAL) == 2, "");
}

static int SystemVQueue(void) {
  int id = MUST(msgget(IPC_PRIVATE, 0600));
  struct {
    long t;
    char c;
  } m = {1, 'x'};
  MUST(msgsnd(id, &m, 1, 0));
  AwaitGate();
  return Kept(msgrcv(id, &m, 1, 0, IPC_NOWAIT) == 1, "");
}

static int SharedMemoryRemoved(void) {
  int id = MUST(shmget(IPC_PRIVATE, 4096, 0600));
  char* p = shmat(id, 0, 0);
  strcpy(p, "x");
  shmctl(id, IPC_RMID, 0);
  AwaitGate();
  return Kept(*p == 'x', "");
}

static int RemovedFile(void) {
  a = MUST(open(InFolder("r"), O_CREAT | O_RDWR, 0644));
  write(a, "x", 1);
  unlink(InFolder("r"));
  AwaitGate();
  char c;
  return Kept(pread(a, &c, 1, 0) == 1 && c == 'x', "");
}

static int MountNamespace(void) {
  MUST(unshare(CLONE_NEWNS));
  AwaitGate();
  struct stat i, j;
  stat("/proc/self/ns/mnt", &i);
  stat("/proc/1/ns/mnt", &j);
  return Kept(i.st_ino != j.st_ino, "");
}

static int ThreadUser(void) {
  pthread_t t;
  pthread_create(&t, 0, UidThread, 0);
  while (!go) Nap();
  AwaitGate();
  done = 1;
  pthread_join(t, 0);
  return Kept(tok, "");
}

static int Nice(void) {
  nice(7);
  AwaitGate();
  errno = 0;
  return Kept(nice(0) == 7, "");
}

static int SchedulingPolicy(void) {
  struct sched_param p = {0};
  MUST(sched_setscheduler(0, SCHED_BATCH, &p));
  AwaitGate();
  return Kept(sched_getscheduler(0) == SCHED_BATCH, "");
}

static int DeathSignal(void) {
  MUST(prctl(PR_SET_PDEATHSIG, SIGUSR2));
  AwaitGate();
  int s;
  prctl(PR_GET_PDEATHSIG, &s);
  return Kept(s == SIGUSR2, "");
}

static int Subreaper(void) {
  MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
  AwaitGate();
  int s = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &s);
  return Kept(s == 1, "");
}

static int NoNewPrivileges(void) {
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  AwaitGate();
  return Kept(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "");
}

static int HugePagesOff(void) {
  MUST(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
  AwaitGate();
  return Kept(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1, "");
}

static int KeepCapabilities(void) {
  MUST(prctl(PR_SET_KEEPCAPS, 1));
  AwaitGate();
  return Kept(prctl(PR_GET_KEEPCAPS) == 1, "");
}

static int SecureBits(void) {
  MUST(prctl(PR_SET_SECUREBITS, 1));
  AwaitGate();
  return Kept(prctl(PR_GET_SECUREBITS) == 1, "");
}

static int OomScore(void) {
  int f = MUST(open("/proc/self/oom_score_adj", O_RDWR));
  MUST(write(f, "321", 3));
  close(f);
  AwaitGate();
  f = open("/proc/self/oom_score_adj", O_RDONLY);
  char s[20] = {0};
  read(f, s, 19);
  return Kept(atoi(s) == 321, s);
}

static int Umask(void) {
  umask(013);
  AwaitGate();
  return Kept(umask(0) == 013, "");
}

static int PendingSignal(void) {
  sigset_t s;
  sigemptyset(&s);
  sigaddset(&s, SIGRTMIN + 1);
  sigprocmask(SIG_BLOCK, &s, 0);
  union sigval v = {.sival_int = 42};
  sigqueue(getpid(), SIGRTMIN + 1, v);
  AwaitGate();
  siginfo_t i;
  struct timespec t = {0, 0};
  return Kept(sigtimedwait(&s, &i, &t) == SIGRTMIN + 1 && i.si_value.sival_int == 42, "");
}

static int IntervalTimer(void) {
  signal(SIGALRM, OnRing);
  struct itimerval i = {{0, 50000}, {0, 50000}};
  setitimer(ITIMER_REAL, &i, 0);
  AwaitGate();
  rings = 0;
  for (int k = 0; k < 40; k++) Nap();
  return Kept(rings > 0, "");
}

static int PosixTimer(void) {
  signal(SIGUSR2, OnRing);
  struct sigevent e = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
  timer_t t;
  MUST(timer_create(CLOCK_MONOTONIC, &e, &t));
  struct itimerspec i = {{0, 50000000}, {0, 50000000}};
  timer_settime(t, 0, &i, 0);
  AwaitGate();
  rings = 0;
  for (int k = 0; k < 40; k++) Nap();
  return Kept(rings > 0, "");
}

static int LockedMemory(void) {
  char* p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(mlock(p, 8192));
  AwaitGate();
  FILE* f = fopen("/proc/self/status", "r");
  char l[200];
  long k = 0;
  while (fgets(l, 200, f)) sscanf(l, "VmLck: %ld", &k);
  return Kept(k >= 8, "");
}

static int NotInheritedMemory(void) {
  char* p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(madvise(p, 8192, MADV_DONTFORK));
  AwaitGate();
  pid_t c = fork();
  if (!c) {
    *p = 1;
    _exit(0);
  }
  int s;
  waitpid(c, &s, 0);
  return Kept(WIFSIGNALED(s), "");
}

static int SealedMemfd(void) {
  a = MUST(memfd_create("s", MFD_ALLOW_SEALING));
  ftruncate(a, 4096);
  MUST(fcntl(a, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
  AwaitGate();
  return Kept(fcntl(a, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW), "");
}

static int Membarrier(void) {
  MUST(syscall(SYS_membarrier, 1 << 4, 0, 0));
  AwaitGate();
  return Kept(syscall(SYS_membarrier, 1 << 3, 0, 0) == 0, "");
}

static int Lease(void) {
  a = MUST(open(InFolder("lf"), O_CREAT | O_RDONLY, 0644));
  MUST(fcntl(a, F_SETLEASE, F_RDLCK));
  AwaitGate();
  return Kept(fcntl(a, F_GETLEASE) == F_RDLCK, "");
}

static int OpenFileLock(void) {
  a = MUST(open(InFolder("ol"), O_CREAT | O_RDWR, 0644));
  struct flock f = {.l_type = F_WRLCK};
  MUST(fcntl(a, F_OFD_SETLK, &f));
  AwaitGate();
  b = open(InFolder("ol"), O_RDWR);
  struct flock g = {.l_type = F_WRLCK};
  return Kept(fcntl(b, F_OFD_SETLK, &g) < 0, "");
}

static int ProcessLock(void) {
  a = MUST(open(InFolder("pl"), O_CREAT | O_RDWR, 0644));
  struct flock f = {.l_type = F_WRLCK};
  MUST(fcntl(a, F_SETLK, &f));
  AwaitGate();
  pid_t c = fork();
  if (!c) {
    struct flock g = {.l_type = F_WRLCK};
    _exit(fcntl(a, F_SETLK, &g) < 0);
  }
  int s;
  waitpid(c, &s, 0);
  return Kept(WEXITSTATUS(s) == 1, "");
}

static int Flock(void) {
  a = MUST(open(InFolder("fl"), O_CREAT | O_RDWR, 0644));
  MUST(syscall(SYS_flock, a, 2));
  AwaitGate();
  b = open(InFolder("fl"), O_RDWR);
  return Kept(syscall(SYS_flock, b, 2 | 4) < 0, "");
}

static int SignalDrivenIo(void) {
  int p[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
  MUST(fcntl(p[0], F_SETOWN, getpid()));
  MUST(fcntl(p[0], F_SETSIG, SIGUSR2));
  MUST(fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK));
  AwaitGate();
  int fl = fcntl(p[0], F_GETFL);
  char w[100];
  sprintf(w, "own %d sig %d async %d", fcntl(p[0], F_GETOWN), fcntl(p[0], F_GETSIG), (fl & O_ASYNC) != 0);
  signal(SIGUSR2, OnRing);
  write(p[1], "x", 1);
  Nap();
  return Kept(rings > 0, w);
}

static int PipeSize(void) {
  int p[2];
  MUST(pipe(p));
  fcntl(p[0], F_SETPIPE_SZ, 262144);
  write(p[1], "x", 1);
  AwaitGate();
  char c;
  return Kept(fcntl(p[0], F_GETPIPE_SZ) == 262144 && read(p[0], &c, 1) == 1, "");
}

static int SocketFilter(void) {
  struct {
    unsigned short c;
    unsigned char jt, jf;
    unsigned int k;
  } code[] = {{6, 0, 0, 0xffff}};
  struct {
    unsigned short l;
    void* f;
  } pr = {1, code};
  a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  struct sockaddr_in s = {.sin_family = AF_INET};
  MUST(bind(a, (void*)&s, sizeof s));
  MUST(setsockopt(a, SOL_SOCKET, SO_ATTACH_FILTER, &pr, sizeof pr));
  AwaitGate();
  socklen_t l = 0;
  getsockopt(a, SOL_SOCKET, SO_GET_FILTER, 0, &l);
  return Kept(l == 1, "");
}

static int Pidfd(void) {
  pid_t c = fork();
  if (!c) {
    for (;;) pause();
  }
  a = MUST(syscall(SYS_pidfd_open, c, 0));
  AwaitGate();
  int r = syscall(SYS_pidfd_send_signal, a, 0, 0, 0);
  kill(c, 9);
  return Kept(r == 0, "");
}

static int UnreapedChild(void) {
  pid_t c = fork();
  if (!c) _exit(5);
  Nap();
  Nap();
  AwaitGate();
  int s;
  return Kept(waitpid(c, &s, 0) == c && WEXITSTATUS(s) == 5, "");
}

static int OwnProcFile(void) {
  a = MUST(open("/proc/self/stat", O_RDONLY));
  AwaitGate();
  char s[10];
  return Kept(read(a, s, 10) > 0, "");
}

static int Affinity(void) {
  cpu_set_t s;
  CPU_ZERO(&s);
  CPU_SET(1, &s);
  MUST(sched_setaffinity(0, sizeof s, &s));
  AwaitGate();
  sched_getaffinity(0, sizeof s, &s);
  return Kept(CPU_COUNT(&s) == 1 && CPU_ISSET(1, &s), "");
}

static int IoPriority(void) {
  MUST(syscall(SYS_ioprio_set, 1, 0, (2 << 13) | 6));
  AwaitGate();
  int v = syscall(SYS_ioprio_get, 1, 0);
  return Kept(v == ((2 << 13) | 6), "");
}

static int TimerSlack(void) {
  MUST(prctl(PR_SET_TIMERSLACK, 777777));
  AwaitGate();
  return Kept(prctl(PR_GET_TIMERSLACK) == 777777, "");
}

static int CoreDumpFilter(void) {
  int f = MUST(open("/proc/self/coredump_filter", O_RDWR));
  MUST(write(f, "0x13", 4));
  close(f);
  AwaitGate();
  f = open("/proc/self/coredump_filter", O_RDONLY);
  char s[20] = {0};
  read(f, s, 19);
  return Kept(strtoul(s, 0, 16) == 0x13, s);
}

static int SessionKeyring(void) {
  MUST(syscall(SYS_keyctl, 1, "mine"));
  long k = MUST(syscall(SYS_add_key, "user", "siding-k", "val", 3, -3));
  (void)k;
  AwaitGate();
  long f = syscall(SYS_keyctl, 10, -3, "user", "siding-k", 0);
  return Kept(f >= 0, "");
}

static int ProcessKeyring(void) {
  MUST(syscall(SYS_add_key, "user", "siding-p", "val", 3, -2));
  AwaitGate();
  long f = syscall(SYS_keyctl, 10, -2, "user", "siding-p", 0);
  return Kept(f >= 0, "");
}

static int TmpfileNamedLater(void) {
  a = MUST(open(folder, O_TMPFILE | O_RDWR, 0644));
  write(a, "x", 1);
  AwaitGate();
  char n[50];
  sprintf(n, "/proc/self/fd/%d", a);
  int r = linkat(AT_FDCWD, n, AT_FDCWD, InFolder("named"), AT_SYMLINK_FOLLOW);
  return Kept(r == 0, r ? strerror(errno) : "");
}

static int CpuTime(void) {
  for (volatile long k = 0; k < 300000000; k++)
    ;
  AwaitGate();
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &t);
  char w[50];
  sprintf(w, "%ld.%03ld", t.tv_sec, t.tv_nsec / 1000000);
  return Kept(t.tv_sec * 1000 + t.tv_nsec / 1000000 > 200, w);
}

static int MemoryPolicy(void) {
  unsigned long n = 1;
  MUST(syscall(SYS_set_mempolicy, 2, &n, 64));
  AwaitGate();
  int m = 0;
  syscall(SYS_get_mempolicy, &m, 0, 0, 0, 0);
  return Kept(m == 2, "");
}

static int LockedFutureMemory(void) {
  MUST(mlockall(MCL_FUTURE));
  AwaitGate();
  char* p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  (void)p;
  FILE* f = fopen("/proc/self/status", "r");
  char l[200];
  long k = 0;
  while (fgets(l, 200, f)) sscanf(l, "VmLck: %ld", &k);
  return Kept(k >= 8, "");
}

static int SealedMapping(void) {
  char* p = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(syscall(462, p, 8192, 0));
  AwaitGate();
  return Kept(munmap(p, 8192) < 0, "");
}

static int Landlock(void) {
  struct landlock_ruleset_attr r = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_DIR};
  int f = MUST(syscall(SYS_landlock_create_ruleset, &r, sizeof r, 0));
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  MUST(syscall(SYS_landlock_restrict_self, f, 0));
  close(f);
  AwaitGate();
  return Kept(mkdir(InFolder("forbidden"), 0755) < 0, "");
}

static int DirectoryNotification(void) {
  a = MUST(open(folder, O_RDONLY | O_DIRECTORY));
  signal(SIGIO, OnRing);
  MUST(fcntl(a, F_NOTIFY, 0x80000004));
  AwaitGate();
  rings = 0;
  close(open(InFolder("dn"), O_CREAT | O_RDWR, 0644));
  for (int k = 0; k < 10; k++) Nap();
  return Kept(rings > 0, "");
}

static int MulticastTtl(void) {
  int ttl = 9, tos = 0x10;
  a = MUST(socket(AF_INET, SOCK_DGRAM, 0));
  struct sockaddr_in s = {.sin_family = AF_INET};
  MUST(bind(a, (void*)&s, sizeof s));
  setsockopt(a, 0, IP_TTL, &ttl, 4);
  setsockopt(a, 0, IP_TOS, &tos, 4);
  setsockopt(a, 0, IP_MULTICAST_TTL, &ttl, 4);
  AwaitGate();
  int x = 0, y = 0, z = 0;
  socklen_t l = 4;
  getsockopt(a, 0, IP_TTL, &x, &l);
  l = 4;
  getsockopt(a, 0, IP_TOS, &y, &l);
  l = 4;
  getsockopt(a, 0, IP_MULTICAST_TTL, &z, &l);
  char w[60];
  sprintf(w, "ttl %d tos %d mttl %d", x, y, z);
  return Kept(x == 9 && y == 0x10 && z == 9, w);
}

static int SamePageMerging(void) {
  MUST(prctl(67, 1, 0, 0, 0));
  AwaitGate();
  return Kept(prctl(68, 0, 0, 0, 0) == 1, "");
}

static int NoCodeFromData(void) {
  MUST(prctl(65, 1, 0, 0, 0));
  AwaitGate();
  return Kept(prctl(66, 0, 0, 0, 0) == 1, "");
}

static int UrgentByte(void) {
  int p[2];
  MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
  write(p[0], "a", 1);
  MUST(send(p[0], "b", 1, MSG_OOB));
  AwaitGate();
  char c = 0;
  return Kept(recv(p[1], &c, 1, MSG_OOB) == 1 && c == 'b', "");
}

static const struct {
  const char* name;
  int (*run)(void);
} kStates[] = {{"vdso_unmapped", VdsoUnmapped},
               {"thread_proc_file", ThreadProcFile},
               {"proc_folder", ProcFolder},
               {"proc_working_folder", ProcWorkingFolder},
               {"memfd_program", MemfdProgram},
               {"user_namespace", UserNamespace},
               {"pid_namespace", PidNamespace},
               {"pid_namespace_for_children", PidNamespaceForChildren},
               {"network_namespace", NetworkNamespace},
               {"thread_namespace", ThreadNamespace},
               {"message_queue_open", MessageQueueOpen},
               {"message_queue_closed", MessageQueueClosed},
               {"zombie_leader", ZombieLeader},
               {"udp_queued", UdpQueued},
               {"inotify_queued", InotifyQueued},
               {"unix_sender", UnixSender},
               {"unix_credentials_queued", UnixCredentialsQueued},
               {"tcp_backlog", TcpBacklog},
               {"semaphore_undo", SemaphoreUndo},
               {"multicast", Multicast},
               {"multicast6", Multicast6},
               {"thread_working_folder", ThreadWorkingFolder},
               {"thread_descriptors", ThreadDescriptors},
               {"cgroup_file", CgroupFile},
               {"deadline_scheduling", DeadlineScheduling},
               {"personality", Personality},
               {"address_randomization", AddressRandomization},
               {"read_implies_exec", ReadImpliesExec},
               {"not_dumpable", NotDumpable},
               {"foreground_ended", ForegroundEnded},
               {"shell_with_jobs", ShellWithJobs},
               {"controlling_terminal", ControllingTerminal},
               {"eventfd_semaphore", EventfdSemaphore},
               {"packet_pipe", PacketPipe},
               {"mptcp", Mptcp},
               {"vsock", Vsock},
               {"userfaultfd", Userfaultfd},
               {"landlock_rules", LandlockRules},
               {"secret_memory", SecretMemory},
               {"udp_socket", UdpSocket},
               {"inotify_watch", InotifyWatch},
               {"unix_pair_queued", UnixPairQueued},
               {"unix_descriptor_queued", UnixDescriptorQueued},
               {"semaphores", Semaphores},
               {"system_v_queue", SystemVQueue},
               {"shared_memory_removed", SharedMemoryRemoved},
               {"removed_file", RemovedFile},
               {"mount_namespace", MountNamespace},
               {"thread_user", ThreadUser},
               {"nice", Nice},
               {"scheduling_policy", SchedulingPolicy},
               {"death_signal", DeathSignal},
               {"subreaper", Subreaper},
               {"no_new_privileges", NoNewPrivileges},
               {"huge_pages_off", HugePagesOff},
               {"keep_capabilities", KeepCapabilities},
               {"secure_bits", SecureBits},
               {"oom_score", OomScore},
               {"umask", Umask},
               {"pending_signal", PendingSignal},
               {"interval_timer", IntervalTimer},
               {"posix_timer", PosixTimer},
               {"locked_memory", LockedMemory},
               {"not_inherited_memory", NotInheritedMemory},
               {"sealed_memfd", SealedMemfd},
               {"membarrier", Membarrier},
               {"lease", Lease},
               {"open_file_lock", OpenFileLock},
               {"process_lock", ProcessLock},
               {"flock", Flock},
               {"signal_driven_io", SignalDrivenIo},
               {"pipe_size", PipeSize},
               {"socket_filter", SocketFilter},
               {"pidfd", Pidfd},
               {"unreaped_child", UnreapedChild},
               {"own_proc_file", OwnProcFile},
               {"affinity", Affinity},
               {"io_priority", IoPriority},
               {"timer_slack", TimerSlack},
               {"core_dump_filter", CoreDumpFilter},
               {"session_keyring", SessionKeyring},
               {"process_keyring", ProcessKeyring},
               {"tmpfile_named_later", TmpfileNamedLater},
               {"cpu_time", CpuTime},
               {"memory_policy", MemoryPolicy},
               {"locked_future_memory", LockedFutureMemory},
               {"sealed_mapping", SealedMapping},
               {"landlock", Landlock},
               {"directory_notification", DirectoryNotification},
               {"multicast_ttl", MulticastTtl},
               {"same_page_merging", SamePageMerging},
               {"no_code_from_data", NoCodeFromData},
               {"urgent_byte", UrgentByte}};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  gate = argv[2];
  snprintf(folder, sizeof folder, "%s", gate);
  *strrchr(folder, '/') = '\0';
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) return 2;
  for (size_t i = 0; i < sizeof kStates / sizeof *kStates; ++i) {
    if (strcmp(kStates[i].name, argv[1]) == 0) return kStates[i].run();
  }
  return 2;
}
