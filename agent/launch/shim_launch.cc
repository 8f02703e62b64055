// Launching what the agent was told to: the environment, account and output of a job of siding's own.
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "agent/launch/shim.h"
#include "agent/launch/start_init.h"
#include "common/status.h"

namespace siding {
namespace {

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
  InitPlan plan;
  plan.init_path = request.init_path();
  plan.command.assign(request.command().begin(), request.command().end());
  plan.environment = Environment(request, account);
  plan.uid = account.uid;
  plan.gid = account.gid;
  plan.groups = account.groups;
  plan.workdir = request.spec().workdir();
  plan.cgroup = request.cgroup();
  plan.output = OutputPath(request.spec().output(), request.job(), request.rank());
  rlimit core{};
  if (getrlimit(RLIMIT_CORE, &core) == 0) plan.limits.push_back({RLIMIT_CORE, {0, core.rlim_max}});
  SIDING_ASSIGN_OR_RETURN(const pid_t init, StartInit(std::move(plan)));
  return ShimTask{init, {}};
}

}  // namespace siding
