// Launching what the agent was told to: the environment, account and output of a job of siding's own.
#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "agent/gpu/collectives.h"
#include "agent/network/gang_network.h"
#include "agent/os/account.h"
#include "agent/os/tmpdir.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_status.h"
#include "agent/shim/start_init.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr rlim_t kUsualOpenFiles = 1024;  // of a login

std::vector<std::string> Environment(const agent::ShimRequest& request, const Account& account) {
  std::map<std::string, std::string> env = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"},
      {"HOME", account.home},
      {"USER", account.name.empty() ? std::to_string(account.uid) : account.name},
      {"LOGNAME", account.name.empty() ? std::to_string(account.uid) : account.name},
      {"SHELL", "/bin/sh"},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", TaskTmpdir(request)},
  };
  for (const auto& [name, value] : request.spec().env()) env[name] = value;
  env["SIDING_JOB_ID"] = std::to_string(request.job());
  env["SIDING_RANK"] = std::to_string(request.rank());
  env["SIDING_NODES"] = std::to_string(request.spec().nodes());
  env["SIDING_SLOTS"] = std::to_string(request.spec().per_node().slots());
  if (request.has_visible_gpus()) env["CUDA_VISIBLE_DEVICES"] = request.visible_gpus();
  std::vector<std::string> list;
  list.reserve(env.size());
  for (const auto& [name, value] : env) list.push_back(absl::StrCat(name, "=", value));
  SetGang(request, list);
  SetGpuCollectives(request.spec(), list);
  return list;
}

// Those of the agent, which its unit sets, but for two that are meant for the agent alone: a job that wants
// cores or thousands of files says so itself, up to the agent's hard limits.
std::vector<std::pair<int, rlimit>> Limits() {
  std::vector<std::pair<int, rlimit>> limits;
  const auto soft = [&](__rlimit_resource resource, rlim_t most) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) return;
    limits.push_back({resource, {std::min(most, limit.rlim_max), limit.rlim_max}});
  };
  soft(RLIMIT_CORE, 0);
  soft(RLIMIT_NOFILE, kUsualOpenFiles);
  return limits;
}

}  // namespace

bool RefusesIoUring(const v1::JobSpec& spec) {
  const auto& methods = spec.methods();
  return !spec.allow_io_uring() && std::find(methods.begin(), methods.end(), v1::CHECKPOINT) != methods.end();
}

void SetVariable(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  const std::string prefix = absl::StrCat(name, "=");
  std::erase_if(environment, [&](const std::string& entry) { return entry.rfind(prefix, 0) == 0; });
  environment.push_back(prefix + value);
}

void SetGpuCollectives(const v1::JobSpec& spec, std::vector<std::string>& environment) {
  if (spec.gpu_collectives() != v1::DRAINABLE) return;
  for (const auto& [name, value] : kDrainableCollectives) SetVariable(environment, name, value);
}

void SetGang(const agent::ShimRequest& request, std::vector<std::string>& environment) {
  if (!request.has_network()) return;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < request.spec().nodes(); ++rank) addresses.push_back(GangAddress(rank));
  SetVariable(environment, "SIDING_GANG_IF", kGangLink);
  SetVariable(environment, "SIDING_GANG_ADDR", GangAddress(request.network().rank()));
  SetVariable(environment, "SIDING_GANG_ADDRS", absl::StrJoin(addresses, ","));
}

std::vector<std::string> CgroupsOf(const agent::ShimRequest& request) {
  std::vector<std::string> cgroups;
  if (!request.cgroup().empty()) cgroups.push_back(request.cgroup());
  for (std::string& folder : FenceOf(request).Folders()) {
    if (folder != request.cgroup()) cgroups.push_back(std::move(folder));
  }
  return cgroups;
}

TaskFence FenceOf(const agent::ShimRequest& request) {
  return {request.fence().memory(), request.fence().processes()};
}

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

ProgramNames NamesOf(const agent::ShimRequest& request) {
  return {request.begun_in(), request.job(), request.rank()};
}

std::string TaskTmpdir(const agent::ShimRequest& request) {
  return NamesOf(request).Tmpdir(request.spec().uid());
}

absl::StatusOr<UniqueFd> MakeTaskNetwork(const agent::ShimRequest& request) {
  if (!request.has_network()) return UniqueFd();
  GangNetworkOptions options;
  options.rank = request.network().rank();
  options.address = request.network().address();
  options.port = request.network().port();
  auto network = MakeGangNetwork(options);
  return network.ok() ? std::move(network) : Annotate(network.status(), "the job's own network");
}

absl::Status MakeTaskTmpdir(const agent::ShimRequest& request) {
  return MakeUserFolder(TaskTmpdir(request), request.spec().uid(), request.spec().gid());
}

absl::StatusOr<ShimTask> LaunchTask(const agent::ShimRequest& request, const std::string& folder) {
  if (request.command().empty()) return absl::InvalidArgumentError("the job has no command");
  SIDING_RETURN_IF_ERROR(MakeTaskTmpdir(request));
  Account account = AccountOf(request.spec().uid(), request.spec().gid());
  if (account.name.empty()) account.name = request.spec().user();
  SIDING_ASSIGN_OR_RETURN(UniqueFd network, MakeTaskNetwork(request));
  InitPlan plan;
  plan.network = network.get();
  plan.init_path = request.init_path();
  plan.command.assign(request.command().begin(), request.command().end());
  plan.environment = Environment(request, account);
  plan.uid = account.uid;
  plan.gid = account.gid;
  plan.groups = account.groups;
  plan.workdir = request.spec().workdir();
  plan.cgroups = CgroupsOf(request);
  plan.end_oom_protection = true;
  plan.first_process = NamesOf(request).FirstProcess();
  plan.output = OutputPath(request.spec().output(), request.job(), request.rank());
  plan.limits = Limits();
  plan.refuse_io_uring = RefusesIoUring(request.spec());
  plan.before_it_runs = [&folder](pid_t init) { return WriteInit(folder, init); };
  SIDING_ASSIGN_OR_RETURN(const pid_t init, StartInit(std::move(plan)));
  return ShimTask{init, std::move(network), {}};
}

}  // namespace siding
