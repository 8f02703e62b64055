#include "agent/shim/slurm_task.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "absl/strings/match.h"
#include "agent/os/account.h"
#include "agent/os/processes.h"
#include "agent/shim/shim.h"
#include "common/status.h"
#include "store/checksum.h"

namespace siding {
namespace {

constexpr char kScriptName[] = "slurm_script";
constexpr char kCgroupRoot[] = "/sys/fs/cgroup";

constexpr char kHasEnded[] = "Slurm's task has ended";

// The numbers of a line of /proc/PID/status.
std::vector<uint32_t> NumbersOf(const std::string& status, const std::string& name) {
  const std::string key = "\n" + name + ":";
  const size_t at = status.find(key);
  if (at == std::string::npos) return {};
  const size_t begin = at + key.size();
  std::istringstream line(status.substr(begin, status.find('\n', begin) - begin));
  std::vector<uint32_t> numbers;
  for (uint32_t number; line >> number;) numbers.push_back(number);
  return numbers;
}

std::string ProcFile(pid_t pid, const char* name) { return absl::StrCat("/proc/", pid, "/", name); }

bool IsBatchScript(const std::string& command) {
  return std::filesystem::path(command).filename() == kScriptName;
}

std::string ScriptPath(const agent::ShimRequest& request) { return TaskTmpdir(request) + "/" + kScriptName; }

// Slurm takes 4 MiB unless its administrator says otherwise (max_script_size).
constexpr off_t kMostScript = 64 << 20;

// The user has named the file, and says what it is: only a script is read, and of no more than its size.
absl::StatusOr<std::string> ReadScript(const std::string& path, uid_t uid) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(path + ": expected a regular file");
  if (info.st_uid != uid && info.st_uid != 0)
    return absl::PermissionDeniedError(path + ": expected a file of the job's user, or root's");
  if (info.st_size > kMostScript)
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": expected at most ", kMostScript, " bytes, got ", info.st_size));
  return ReadAll(file, path, static_cast<size_t>(info.st_size));
}

Account UserOf(const agent::ShimRequest& request) {
  return AccountOf(request.spec().uid(), request.spec().gid());
}

std::string ValueOf(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& entry : environment) {
    if (absl::StartsWith(entry, name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

// As many as Slurm says that the task has; of several on a node that were given no number each has one.
std::string SlotsOf(const std::vector<std::string>& environment) {
  const auto value = [&](const char* name) { return ValueOf(environment, name); };
  std::string slots = value("SLURM_CPUS_PER_TASK");
  if (slots.empty() && value("SLURM_NTASKS") == value("SLURM_NNODES")) slots = value("SLURM_CPUS_ON_NODE");
  return slots.empty() ? "1" : slots;
}

// Where a cgroup's folder may be: version 2 alone, both versions side by side, or version 1.
std::vector<std::string> Candidates(const CgroupFolder& folder) {
  const std::string root = kCgroupRoot;
  if (folder.controllers.empty()) return {root + folder.path, root + "/unified" + folder.path};
  const bool named = folder.controllers.rfind("name=", 0) == 0;
  return {root + "/" + (named ? folder.controllers.substr(5) : folder.controllers) + folder.path};
}

absl::Status Join(const CgroupFolder& folder) {
  for (const std::string& path : Candidates(folder)) {
    UniqueFd procs(open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (procs.valid() && write(procs.get(), "0", 1) == 1) return absl::OkStatus();
  }
  return ErrnoError(errno, absl::StrCat("join the cgroup ", folder.controllers, ":", folder.path));
}

}  // namespace

std::vector<std::string> SplitAtZeros(const std::string& text, int skipped) {
  std::vector<std::string> strings;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, '\0');) {
    if (skipped-- <= 0) strings.push_back(item);
  }
  return strings;
}

std::string CommandChecksum(std::vector<std::string> command) {
  if (!command.empty() && IsBatchScript(command[0])) command[0] = kScriptName;
  store::StreamHash hash;
  for (const std::string& word : command) hash.Update(word.c_str(), word.size() + 1);
  return hash.Checksum();
}

std::vector<gid_t> GroupsOf(const std::string& status) { return NumbersOf(status, "Groups"); }

bool IsOfUser(const std::string& status, uid_t uid) {
  return NumbersOf(status, "Uid") == std::vector<uint32_t>(4, uid);
}

absl::StatusOr<SlurmTask> SlurmTask::Hold(pid_t pid) {
  SIDING_ASSIGN_OR_RETURN(UniqueFd pidfd, OpenPidfd(pid));
  return SlurmTask(pid, std::move(pidfd));
}

absl::StatusOr<SlurmTask> SlurmTask::Parent(int socket) {
  ucred maker{};
  socklen_t size = sizeof maker;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &size) != 0)
    return ErrnoError(errno, "who is the task");
  auto task = Hold(maker.pid);
  // Asked last: as long as it is the parent, its number is nobody else's.
  if (getppid() != maker.pid) return absl::CancelledError(kHasEnded);
  return task;
}

absl::StatusOr<std::string> SlurmTask::Read(const char* name) const {
  auto text = ReadFile(ProcFile(pid_, name));
  SIDING_RETURN_IF_ERROR(Lives());
  return text;
}

absl::Status SlurmTask::Lives() const {
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  int count;
  do count = poll(&ended, 1, 0);
  while (count < 0 && errno == EINTR);
  return count == 0 ? absl::OkStatus() : absl::CancelledError(kHasEnded);
}

std::vector<CgroupFolder> ParseCgroups(const std::string& text) {
  std::vector<CgroupFolder> folders;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    folders.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return folders;
}

absl::Status JoinCgroupsOf(const SlurmTask& task) {
  SIDING_ASSIGN_OR_RETURN(const std::string theirs, task.Read("cgroup"));
  SIDING_ASSIGN_OR_RETURN(const std::string ours, ReadFile("/proc/self/cgroup"));
  const auto before = ParseCgroups(ours);
  for (const CgroupFolder& folder : ParseCgroups(theirs)) {
    bool there = false;
    for (const CgroupFolder& own : before)
      there |= own.controllers == folder.controllers && own.path == folder.path;
    if (!there) SIDING_RETURN_IF_ERROR(Join(folder));
  }
  return absl::OkStatus();
}

absl::StatusOr<InitPlan> ReadSlurmTask(const SlurmTask& task, const agent::ShimRequest& request) {
  const pid_t pid = task.pid();
  InitPlan plan;
  SIDING_ASSIGN_OR_RETURN(const std::string command, task.Read("cmdline"));
  SIDING_ASSIGN_OR_RETURN(const std::string environment, task.Read("environ"));
  SIDING_ASSIGN_OR_RETURN(const std::string status, task.Read("status"));
  plan.command = SplitAtZeros(command, spank::kTaskArguments);
  plan.environment = SplitAtZeros(environment, 0);
  plan.groups = GroupsOf(status);
  plan.uid = request.spec().uid();
  plan.gid = request.spec().gid();
  plan.init_path = request.init_path();
  const size_t mask = status.find("\nUmask:");
  if (mask != std::string::npos)
    plan.umask = static_cast<mode_t>(std::strtoul(status.c_str() + mask + 7, nullptr, 8));
  char folder[PATH_MAX];
  const ssize_t size = readlink(ProcFile(pid, "cwd").c_str(), folder, sizeof folder);
  if (size > 0) plan.workdir.assign(folder, static_cast<size_t>(size));
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    if (prlimit(pid, static_cast<__rlimit_resource>(resource), nullptr, &limit) == 0)
      plan.limits.push_back({resource, limit});
  }
  SIDING_RETURN_IF_ERROR(task.Lives());
  // Uid and groups are of one moment: those of a program that runs as somebody else too are not handed on.
  if (!IsOfUser(status, plan.uid))
    return absl::PermissionDeniedError(absl::StrCat("Slurm's task does not run as user ", plan.uid));
  if (plan.command.empty()) return absl::NotFoundError("Slurm's task is gone");
  return plan;
}

void SetRankOfStep(const agent::ShimRequest& request, std::vector<std::string>& environment) {
  if (!request.has_network()) return;
  const std::string slots = SlotsOf(environment);
  SetGang(request, environment);
  SetVariable(environment, "SIDING_JOB_ID", std::to_string(request.job()));
  SetVariable(environment, "SIDING_RANK", std::to_string(request.network().rank()));
  SetVariable(environment, "SIDING_NODES", std::to_string(request.spec().nodes()));
  SetVariable(environment, "SIDING_SLOTS", slots);
}

absl::StatusOr<SlurmHandover> ReceiveHandover(int socket) {
  int fds[3];
  spank::StepHandover said;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)];
  iovec data = {&said, sizeof said};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received;
  do received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (received < 0 && errno == EINTR);
  const cmsghdr* const header = received == sizeof said ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof fds))
    return absl::NotFoundError("Slurm's task did not hand over its descriptors");
  std::memcpy(fds, CMSG_DATA(header), sizeof fds);
  return SlurmHandover{said, {UniqueFd(fds[0]), UniqueFd(fds[1]), UniqueFd(fds[2])}};
}

absl::StatusOr<std::string> CopyBatchScript(const std::string& command, const agent::ShimRequest& request) {
  if (!IsBatchScript(command)) return "";
  SIDING_RETURN_IF_ERROR(MakeTaskTmpdir(request));
  // Both the script's name and the folder of the copy are in the user's hands.
  const FilesAsUser as_user(UserOf(request));
  if (!as_user.ok()) return absl::PermissionDeniedError("cannot act as the job's user");
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadScript(command, request.spec().uid()));
  const std::string path = ScriptPath(request);
  unlink(path.c_str());
  UniqueFd script(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700));
  if (!script.valid()) return ErrnoError(errno, path);
  // The same time wherever and whenever it is written: a restore refuses files that have been changed.
  const timespec always[2] = {{0, 0}, {0, 0}};
  if (write(script.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      fchmod(script.get(), 0700) != 0 || futimens(script.get(), always) != 0) {
    return ErrnoError(errno, path);
  }
  return path;
}

void RemoveBatchScript(const agent::ShimRequest& request) {
  const FilesAsUser as_user(UserOf(request));
  if (!as_user.ok()) return;
  unlink(ScriptPath(request).c_str());
  rmdir(TaskTmpdir(request).c_str());
}

}  // namespace siding
