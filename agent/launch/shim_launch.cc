// Launching: everything between clone() and exec happens in the child in the order of the text below, and
// every failure travels back through a pipe as (stage, errno).
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "agent/launch/shim.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

enum Stage : int { kRun, kCgroup, kMount, kSession, kOutput, kUser, kWorkdir, kInit };

constexpr int kStatusFd = 3;

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;
  std::string home = "/";
  std::vector<gid_t> groups;
};

Account LookUp(const v1::JobSpec& spec) {
  Account account{spec.uid(), spec.gid(), spec.user(), "/", {static_cast<gid_t>(spec.gid())}};
  if (const passwd* entry = getpwuid(spec.uid())) {
    account.name = entry->pw_name;
    account.home = entry->pw_dir;
    int count = 64;
    std::vector<gid_t> groups(count);
    if (getgrouplist(entry->pw_name, spec.gid(), groups.data(), &count) < 0) {
      groups.resize(count);
      if (getgrouplist(entry->pw_name, spec.gid(), groups.data(), &count) < 0) count = 0;
    }
    groups.resize(count);
    if (count > 0) account.groups = groups;
  }
  return account;
}

std::vector<std::string> Environment(const agent::ShimRequest& request, const Account& account) {
  std::map<std::string, std::string> env = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
      {"HOME", account.home},
      {"USER", account.name.empty() ? std::to_string(account.uid) : account.name},
      {"LOGNAME", account.name.empty() ? std::to_string(account.uid) : account.name},
      {"SHELL", "/bin/sh"},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", TaskTmpdir(request.spec().uid(), request.job(), request.rank())},
  };
  for (const auto& [name, value] : request.spec().env()) env[name] = value;
  env["SIDING_JOB_ID"] = std::to_string(request.job());
  env["SIDING_RANK"] = std::to_string(request.rank());
  env["SIDING_NODES"] = std::to_string(request.spec().nodes());
  if (request.has_visible_gpus()) env["CUDA_VISIBLE_DEVICES"] = request.visible_gpus();
  std::vector<std::string> list;
  list.reserve(env.size());
  for (const auto& [name, value] : env) list.push_back(absl::StrCat(name, "=", value));
  return list;
}

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

// In the child, as pid 1 of the new namespace.
[[noreturn]] void Become(const agent::ShimRequest& request, const Account& account, int status_fd,
                         char* const argv[], char* const envp[], const std::string& output) {
  if (!request.cgroup().empty()) {
    UniqueFd procs(open((request.cgroup() + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs.valid() || write(procs.get(), "0", 1) != 1) Fail(status_fd, kCgroup);
  }
  // What is mounted here must not reach the node, nor the other way round in the middle of a dump. The /proc
  // of this pid namespace is CRIU's way to the task; without one it would make a folder for it where the task
  // works.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) Fail(status_fd, kMount);
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) Fail(status_fd, kMount);
  if (setsid() < 0) Fail(status_fd, kSession);
  umask(022);
  const rlimit no_core = {0, RLIM_INFINITY};
  rlimit core{};
  if (getrlimit(RLIMIT_CORE, &core) == 0) {
    core.rlim_cur = no_core.rlim_cur;
    setrlimit(RLIMIT_CORE, &core);
  }
  if (setgroups(account.groups.size(), account.groups.data()) != 0 && geteuid() == 0) Fail(status_fd, kUser);
  if (setresgid(account.gid, account.gid, account.gid) != 0) Fail(status_fd, kUser);
  if (setresuid(account.uid, account.uid, account.uid) != 0) Fail(status_fd, kUser);
  // As the user from here on: a file that the user may not write stays unwritten.
  if (!request.spec().workdir().empty() && chdir(request.spec().workdir().c_str()) != 0) {
    Fail(status_fd, kWorkdir);
  }
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(output.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY, 0644);
  if (in < 0 || out < 0) Fail(status_fd, kOutput);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  if (status_fd != kStatusFd) status_fd = dup2(status_fd, kStatusFd);
  fcntl(kStatusFd, F_SETFD, 0);
  syscall(SYS_close_range, kStatusFd + 1, ~0U, 0);
  for (int signal_number = 1; signal_number < 32; ++signal_number) signal(signal_number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, envp);
  Fail(status_fd, kInit);
}

std::string Explain(const agent::ShimRequest& request, const std::string& output, Stage stage, int error) {
  const auto because = [&](const std::string& what) { return absl::StrCat(what, ": ", strerror(error)); };
  switch (stage) {
    case kRun:
      return because("cannot run " + request.command(0));
    case kCgroup:
      return because("cannot join the cgroup " + request.cgroup());
    case kMount:
      return because("cannot mount /proc for the job");
    case kSession:
      return because("cannot begin a session");
    case kOutput:
      return because("cannot open the output " + output);
    case kUser:
      return because(absl::StrCat("cannot become user ", request.spec().uid()));
    case kWorkdir:
      return because("cannot enter the working folder " + request.spec().workdir());
    case kInit:
      return because("cannot run " + request.init_path());
  }
  return because("cannot launch");
}

}  // namespace

std::string OutputPath(const std::string& pattern, int64_t job, int rank) {
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'j')
      path += std::to_string(job);
    else if (next == 'r')
      path += std::to_string(rank);
    else if (next == '%')
      path += '%';
    else {
      path += pattern[i];
      continue;
    }
    ++i;
  }
  return path.empty() ? "/dev/null" : path;
}

absl::Status MakeTaskTmpdir(const agent::ShimRequest& request) {
  const std::string path = TaskTmpdir(request.spec().uid(), request.job(), request.rank());
  if (mkdir(path.c_str(), 0700) == 0) {
    if (lchown(path.c_str(), request.spec().uid(), request.spec().gid()) != 0) {
      return ErrnoError(errno, "chown " + path);
    }
    return absl::OkStatus();
  }
  if (errno != EEXIST) return ErrnoError(errno, "mkdir " + path);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return ErrnoError(errno, "stat " + path);
  // /tmp is everybody's: somebody may have been there first.
  if (!S_ISDIR(info.st_mode) || info.st_uid != request.spec().uid()) {
    return absl::FailedPreconditionError(path + " exists and does not belong to the job's user");
  }
  return absl::OkStatus();
}

absl::StatusOr<ShimTask> LaunchTask(const agent::ShimRequest& request) {
  if (request.command().empty()) return absl::InvalidArgumentError("the job has no command");
  SIDING_RETURN_IF_ERROR(MakeTaskTmpdir(request));
  const Account account = LookUp(request.spec());
  const std::string output = OutputPath(request.spec().output(), request.job(), request.rank());
  std::vector<std::string> arguments = {request.init_path(), "-s", std::to_string(kStatusFd), "--"};
  arguments.insert(arguments.end(), request.command().begin(), request.command().end());
  std::vector<std::string> environment = Environment(request, account);
  std::vector<char*> argv = Pointers(arguments);
  std::vector<char*> envp = Pointers(environment);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // An ipc namespace of its own: System V segments cannot be dumped otherwise.
  const long flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | SIGCHLD;
  const pid_t init = static_cast<pid_t>(syscall(SYS_clone, flags, nullptr, nullptr, nullptr, nullptr));
  if (init < 0) return ErrnoError(errno, "cannot make a pid namespace");
  if (init == 0) Become(request, account, write_end.get(), argv.data(), envp.data(), output);
  write_end.Reset();

  int report[2];
  ssize_t n;
  do n = read(read_end.get(), report, sizeof report);
  while (n < 0 && errno == EINTR);
  if (n == 0) return ShimTask{init, {}};
  waitpid(init, nullptr, 0);
  if (n != sizeof report) return absl::InternalError("the launch ended in an unknown way");
  return absl::FailedPreconditionError(Explain(request, output, static_cast<Stage>(report[0]), report[1]));
}

}  // namespace siding
