// Everything between clone() and exec happens in the child in the order of the text below, and every failure
// travels back through a pipe as (stage, errno).
#include "agent/shim/start_init.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "agent/os/fence.h"
#include "agent/os/mounts.h"
#include "agent/shim/outside.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

enum Stage : int {
  kRun,
  kCgroup,
  kMount,
  kSession,
  kOutput,
  kUser,
  kWorkdir,
  kFilter,
  kInit,
  kNetwork,
  kOwnMounts
};

constexpr int kStatusFd = 3;
constexpr int kAboveStdio = 10;

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void Fail(int fd, Stage stage) {
  const int report[2] = {stage, errno};
  if (write(fd, report, sizeof report) < 0) _exit(125);
  _exit(126);
}

// The name of the file behind the descriptor; false if it has none.
bool NameOf(int fd, char (&name)[PATH_MAX]) {
  char link[32];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, name, sizeof name - 1);
  if (size <= 0 || name[0] != '/') return false;
  name[size] = '\0';
  return true;
}

// A file that was opened outside belongs to a mount of another namespace, which CRIU could not find again: it
// is opened again, as the user. What has no name (a pipe, a deleted file) stays as it is.
void Reopen(int fd) {
  char name[PATH_MAX];
  char before[PATH_MAX];
  if (!NameOf(fd, name)) return;
  const int flags = fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK);
  // Output and errors in one file share their position.
  if (fd == 2 && NameOf(1, before) && std::strcmp(name, before) == 0 &&
      fcntl(1, F_GETFL) == fcntl(2, F_GETFL)) {
    dup2(1, 2);
    return;
  }
  const off_t at = lseek(fd, 0, SEEK_CUR);
  const int again = open(name, flags | O_NOCTTY);
  if (again < 0) return;
  if (at > 0) lseek(again, at, SEEK_SET);
  dup2(again, fd);
  close(again);
}

// As the user; returns false with errno set.
bool SetStdio(const InitPlan& plan) {
  if (plan.stdio[0] < 0) {
    const int in = open("/dev/null", O_RDONLY);
    // A named pipe without a reader would block the start for ever.
    const int out = open(plan.output.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK, 0644);
    if (out >= 0) fcntl(out, F_SETFL, O_APPEND);
    return in >= 0 && out >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(out, 2) == 2;
  }
  for (int fd = 0; fd < 3; ++fd) {
    if (dup2(plan.stdio[fd], fd) != fd) return false;
  }
  for (int fd = 0; fd < 3; ++fd) Reopen(fd);
  return true;
}

// The same numbers on every architecture that siding runs on; io_uring_setup is the first of three.
constexpr uint32_t kIoUringFirst = 425, kIoUringLast = 427;
constexpr uint32_t kX32Bit = 0x40000000;

// Returns false with errno set. The filter is inherited by all that the task starts, dumped and restored.
bool RefuseIoUring() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~kX32Bit),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kIoUringFirst, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kIoUringLast, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof code / sizeof *code, code};
  // The flag: older kernels otherwise slow down every process with a filter, against attacks by its own code.
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0;
}

// In the child: returns when the parent has said so, ends with the parent otherwise.
void AwaitGo(int fd) {
  char byte;
  ssize_t n;
  do n = read(fd, &byte, 1);
  while (n < 0 && errno == EINTR);
  if (n != 1) _exit(125);
}

// But for one in which the task is to work. One that cannot be left is kept.
void LeaveTransientMounts(const InitPlan& plan) {
  const auto mounts = ParseMounts(ReadFile("/proc/self/mountinfo").value_or(""));
  for (const Mount& one : mounts) {
    const bool works_there = absl::StartsWith(plan.workdir + "/", one.point + "/");
    if (IsTransient(one, plan.uid) && !works_there) umount2(one.point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  }
}

// What starts the ranks of a gang gives them terminals. Those of the node have numbers, of which another
// process may have one when it is needed again at a restore. The group: tty's, on all distributions. Returns
// false with errno set.
bool MountOwnTerminals() {
  constexpr char kOptions[] = "newinstance,ptmxmode=0666,mode=0620,gid=5";
  if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, kOptions) != 0) return false;
  struct stat info {};
  if (lstat("/dev/ptmx", &info) != 0) return false;
  return S_ISLNK(info.st_mode) || mount("/dev/pts/ptmx", "/dev/ptmx", nullptr, MS_BIND, nullptr) == 0;
}

// Programs that run on many nodes have shared memory whose names are one another's where two meet on a node,
// since the numbers of processes in them are the same. It goes with the image, with all that is in it.
// Returns false with errno set.
bool MountOwnMemory() { return mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") == 0; }

// Programs that look for networks look for them in /sys (UCX does), and the node's shows those of the node:
// what /sys/class/net lists is settled when it is mounted. What is mounted below it stays as it is. Needs a
// /dev/shm of its own, where it is put together. Returns false with errno set.
bool MountOwnSystem() {
  constexpr char kAside[] = "/dev/shm/sys", kPlace[] = "/sys";
  constexpr unsigned long kKept = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;  // as of ST_...
  struct statvfs info {};
  if (statvfs(kPlace, &info) != 0 || mkdir(kAside, 0700) != 0 ||
      mount("sysfs", kAside, "sysfs", info.f_flag & kKept, nullptr) != 0)
    return false;
  std::string above;  // the last one that has been taken along, with all below it
  for (const Mount& one : ParseMounts(ReadFile("/proc/self/mountinfo").value_or(""))) {
    const bool is_along = !above.empty() && absl::StartsWith(one.point + "/", above);
    if (is_along || !absl::StartsWith(one.point, "/sys/")) continue;
    const std::string there = kAside + one.point.substr(sizeof kPlace - 1);
    if (mount(one.point.c_str(), there.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) return false;
    above = one.point + "/";
  }
  return umount2(kPlace, MNT_DETACH) == 0 && mount(kAside, kPlace, nullptr, MS_MOVE, nullptr) == 0 &&
         rmdir(kAside) == 0;
}

// Where /proc/sys may not be written, as in some containers, they begin at 2.
void BeginNumbersAt(int first) {
  const UniqueFd last(open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC));
  if (last.valid()) WriteAll(last, std::to_string(first - 1), "ns_last_pid").IgnoreError();
}

// In the child, as pid 1 of the new namespace.
[[noreturn]] void Become(const InitPlan& plan, int status_fd, char* const argv[], char* const envp[]) {
  for (const std::string& cgroup : plan.cgroups) {
    UniqueFd procs(open((cgroup + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs.valid() || write(procs.get(), "0", 1) != 1) Fail(status_fd, kCgroup);
  }
  // While this is root's: what a user has got like that, a user can go back to.
  if (plan.end_oom_protection) EndOomProtection();
  if (plan.network >= 0 && setns(plan.network, CLONE_NEWNET) != 0) Fail(status_fd, kNetwork);
  // What is mounted here must not reach the node, nor the other way round in the middle of a dump. The /proc
  // of this pid namespace is CRIU's way to the task; without one it would make a folder for it where the task
  // works.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) Fail(status_fd, kMount);
  LeaveTransientMounts(plan);
  if (plan.network >= 0 && !(MountOwnTerminals() && MountOwnMemory() && MountOwnSystem()))
    Fail(status_fd, kOwnMounts);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) Fail(status_fd, kMount);
  if (plan.first_process > 0) BeginNumbersAt(plan.first_process);
  if (setsid() < 0) Fail(status_fd, kSession);
  umask(plan.umask);
  for (const auto& [resource, limit] : plan.limits)
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  if (plan.refuse_io_uring && geteuid() == 0 && !RefuseIoUring()) Fail(status_fd, kFilter);
  if (setgroups(plan.groups.size(), plan.groups.data()) != 0 && geteuid() == 0) Fail(status_fd, kUser);
  if (setresgid(plan.gid, plan.gid, plan.gid) != 0) Fail(status_fd, kUser);
  if (setresuid(plan.uid, plan.uid, plan.uid) != 0) Fail(status_fd, kUser);
  // As the user from here on: a file that the user may not write stays unwritten.
  if (!plan.workdir.empty() && chdir(plan.workdir.c_str()) != 0) Fail(status_fd, kWorkdir);
  if (!SetStdio(plan)) Fail(status_fd, kOutput);
  if (status_fd != kStatusFd) status_fd = dup2(status_fd, kStatusFd);
  fcntl(kStatusFd, F_SETFD, 0);
  syscall(SYS_close_range, kStatusFd + 1, ~0U, 0);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, envp);
  Fail(status_fd, kInit);
}

std::string Explain(const InitPlan& plan, Stage stage, int error) {
  const auto because = [&](const std::string& what) { return absl::StrCat(what, ": ", strerror(error)); };
  switch (stage) {
    case kRun:
      return because("cannot run " + plan.command[0]);
    case kCgroup:
      return because("cannot join the cgroups " + absl::StrJoin(plan.cgroups, ", "));
    case kMount:
      return because("cannot mount /proc for the job");
    case kSession:
      return because("cannot begin a session");
    case kOutput:
      return because("cannot open the output " + plan.output);
    case kUser:
      return because(absl::StrCat("cannot become user ", plan.uid));
    case kWorkdir:
      return because("cannot enter the working folder " + plan.workdir);
    case kFilter:
      return because("cannot keep the job from io_uring");
    case kNetwork:
      return because("cannot enter the job's network");
    case kOwnMounts:
      return because("cannot mount /dev/pts, /dev/shm and /sys for the job");
    case kInit:
      return because("cannot run " + plan.init_path);
  }
  return because("cannot launch");
}

}  // namespace

absl::StatusOr<pid_t> StartInit(InitPlan plan) {
  std::vector<std::string> arguments = {plan.init_path, "-s", std::to_string(kStatusFd)};
  if (plan.passes_on == PassesOn::kQueued) arguments.push_back("-q");
  arguments.push_back("--");
  arguments.insert(arguments.end(), plan.command.begin(), plan.command.end());
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(plan.environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(ends[0]);
  // Above 0, 1 and 2, which are about to be replaced, even if the caller has closed its own.
  UniqueFd write_end(fcntl(ends[1], F_DUPFD_CLOEXEC, kAboveStdio));
  close(ends[1]);
  if (!write_end.valid()) return ErrnoError(errno, "pipe");
  // The child waits at one end; the other is closed by our death as well.
  int go[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) != 0) return ErrnoError(errno, "socketpair");
  std::array<UniqueFd, 2> ends_of_go = {UniqueFd(go[0]), UniqueFd(go[1])};
  // An ipc namespace of its own: System V segments cannot be dumped otherwise.
  const long flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | SIGCHLD;
  const pid_t init = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (init < 0) return ErrnoError(errno, "cannot make a pid namespace");
  if (init == 0) {
    ends_of_go[1].Reset();
    AwaitGo(ends_of_go[0].get());
    Become(plan, write_end.get(), argv.data(), envp.data());
  }
  write_end.Reset();

  ends_of_go[0].Reset();
  if (absl::Status status = plan.before_it_runs(init); !status.ok()) {
    kill(init, SIGKILL);
    waitpid(init, nullptr, 0);
    return status;
  }
  // An init that has died on the way has said why.
  if (send(ends_of_go[1].get(), "g", 1, MSG_NOSIGNAL) < 0 && errno != EPIPE) {
    const int error = errno;
    kill(init, SIGKILL);
    waitpid(init, nullptr, 0);
    return ErrnoError(error, "start the init");
  }

  int report[2];
  ssize_t n;
  do n = read(read_end.get(), report, sizeof report);
  while (n < 0 && errno == EINTR);
  if (n == 0) return init;
  waitpid(init, nullptr, 0);
  if (n != sizeof report) return absl::InternalError("the launch ended in an unknown way");
  const auto stage = static_cast<Stage>(report[0]);
  const std::string why = Explain(plan, stage, report[1]);
  const bool as_asked = stage == kRun || stage == kOutput || stage == kWorkdir;
  return as_asked ? OutsideProblem(absl::FailedPreconditionError(why)) : absl::InternalError(why);
}

}  // namespace siding
