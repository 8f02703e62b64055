#include "agent/os/fence.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/os/cgroups.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int64_t kNone = -1;
// Of a task that holds more than its limit: beside what it has, and at least.
constexpr int64_t kRoomOfLoose = 64 << 20;
constexpr int64_t kLeastRoom = 16 << 20;
constexpr char kLimit1[] = "/memory.limit_in_bytes";
constexpr char kSwapLimit1[] = "/memory.memsw.limit_in_bytes";
constexpr char kLimit2[] = "/memory.max";
constexpr char kSwapLimit2[] = "/memory.swap.max";

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// The number that is all of a file; that of a line with a name, if one is given. -1: there is none.
int64_t Number(const std::string& path, const std::string& name = "") {
  const auto text = ReadFile(path);
  if (!text.ok()) return -1;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!name.empty() && line.rfind(name + " ", 0) != 0) continue;
    int64_t number = 0;
    return absl::SimpleAtoi(name.empty() ? line : line.substr(name.size() + 1), &number) ? number : -1;
  }
  return -1;
}

bool Lists(const std::string& path, const std::string& word) {
  const auto text = ReadFile(path);
  if (!text.ok()) return false;
  const std::vector<std::string> words = absl::StrSplit(absl::StripAsciiWhitespace(*text), ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The root of the node's cgroups with that controller; empty if there can be none. A controller of version 2
// has to be passed on from each folder to those in it.
std::string Root2(const std::string& mount, const std::string& node, const std::string& controller) {
  if (mount.empty() || !Lists(mount + "/cgroup.controllers", controller)) return "";
  const std::string siding = mount + "/siding";
  const std::string root = siding + "/" + node;
  if (!MakeDirectories(root).ok()) return "";
  for (const std::string& folder : {mount, siding, root}) {
    const std::string passed_on = folder + "/cgroup.subtree_control";
    if (!Lists(passed_on, controller) && !WriteCgroupFile(passed_on, "+" + controller).ok()) return "";
  }
  return root;
}

std::string Root1(const std::string& mount, const std::string& node) {
  if (mount.empty()) return "";
  const std::string root = mount + "/siding/" + node;
  return MakeDirectories(root).ok() ? root : "";
}

}  // namespace

bool TaskFence::IsV2() const { return Exists(memory_ + kLimit2); }
bool TaskFence::EndsAsOne() const { return !memory_.empty() && Exists(memory_ + "/memory.oom.group"); }

std::vector<std::string> TaskFence::Folders() const {
  std::vector<std::string> folders;
  if (!memory_.empty()) folders.push_back(memory_);
  if (!processes_.empty() && processes_ != memory_) folders.push_back(processes_);
  return folders;
}

absl::Status TaskFence::Make() const {
  // What an earlier task of the name was killed for is not this one's.
  SIDING_RETURN_IF_ERROR(Remove());
  for (const std::string& folder : Folders()) SIDING_RETURN_IF_ERROR(MakeDirectories(folder));
  Open();
  return absl::OkStatus();
}

absl::Status TaskFence::Remove() const {
  absl::Status status;
  for (const std::string& folder : Folders()) status.Update(RemoveCgroupFolder(folder));
  return status;
}

absl::Status TaskFence::SetMemory(int64_t limit) const {
  if (memory_.empty()) return absl::OkStatus();
  if (IsV2()) {
    // All or nothing: a job with one process missing is of no use.
    if (limit >= 0 && EndsAsOne())
      SIDING_RETURN_IF_ERROR(WriteCgroupFile(memory_ + "/memory.oom.group", "1"));
    const std::string swap = memory_ + kSwapLimit2;
    // Without swap accounting there is no such file.
    if (Exists(swap)) SIDING_RETURN_IF_ERROR(WriteCgroupFile(swap, limit < 0 ? "max" : "0"));
    return WriteCgroupFile(memory_ + kLimit2, limit < 0 ? "max" : std::to_string(limit));
  }
  // The one may never be above the other: down with the first, up with the second before it.
  const std::string text = std::to_string(limit);
  absl::Status status = WriteCgroupFile(memory_ + kLimit1, text);
  if (const std::string swap = memory_ + kSwapLimit1; Exists(swap)) {
    const absl::Status swapped = WriteCgroupFile(swap, text);
    if (swapped.ok() && !status.ok()) status = WriteCgroupFile(memory_ + kLimit1, text);
    status.Update(swapped);
  }
  return status;
}

int64_t TaskFence::Used() const {
  const std::string stat = memory_ + "/memory.stat";
  const int64_t used = Number(memory_ + (IsV2() ? "/memory.current" : "/memory.usage_in_bytes"));
  const auto sum = [&](std::initializer_list<const char*> names) {
    int64_t bytes = 0;
    for (const char* name : names) bytes += std::max<int64_t>(0, Number(stat, name));
    return bytes;
  };
  // What has to be written first may stay for as long as a server is away. Version 1 has other names for it.
  const int64_t files = sum({"active_file", "inactive_file", "slab_reclaimable"});
  const int64_t unwritten = IsV2() ? sum({"file_dirty", "file_writeback"}) : sum({"dirty", "writeback"});
  return std::max<int64_t>(0, used - std::max<int64_t>(0, files - unwritten));
}

Bytes TaskFence::MemoryLimit() const {
  const int64_t limit = Number(memory_ + (IsV2() ? kLimit2 : kLimit1));
  return Bytes{limit < 0 ? std::numeric_limits<int64_t>::max() : limit};
}

void TaskFence::Open() const {
  SetMemory(kNone).IgnoreError();
  if (!processes_.empty()) WriteCgroupFile(processes_ + "/pids.max", "max").IgnoreError();
}

void TaskFence::Raise(Bytes room) const {
  if (memory_.empty()) return;
  const int64_t now = MemoryLimit().value;
  const bool fits = now < std::numeric_limits<int64_t>::max() - room.value;
  SetMemory(fits ? now + room.value : kNone).IgnoreError();
}

bool TaskFence::Hold(const FenceLimits& limits, Bytes slack, std::optional<Bytes> most) const {
  if (!processes_.empty()) {
    // One that has more already can make no others.
    const std::string most = limits.processes > 0 ? std::to_string(limits.processes) : "max";
    WriteCgroupFile(processes_ + "/pids.max", most).IgnoreError();
  }
  if (memory_.empty() || !Exists(memory_)) return true;
  return limits.memory.value <= 0 ? SetMemory(kNone).ok()
                                  : HoldMemory(limits.memory, slack, most.value_or(MemoryLimit()));
}

bool TaskFence::HoldMemory(Bytes limit, Bytes slack, Bytes most) const {
  // Version 2 would end the task at once for what it has too much; version 1 says no.
  const int64_t used = Used();
  if (used + slack.value <= limit.value && SetMemory(limit.value).ok()) return true;
  // Room to live in, but not more each time.
  const int64_t room = std::max({slack.value, kRoomOfLoose, used / 16});
  const int64_t least = std::max({limit.value, used + kLeastRoom, std::min(used + room, most.value)});
  if (least < MemoryLimit().value && !SetMemory(least).ok()) {
    // Of what can be read again some is in use just now.
    SetMemory(std::max(least, Number(memory_ + "/memory.usage_in_bytes") + room)).IgnoreError();
  }
  return false;
}

int64_t TaskFence::Processes() const { return std::max<int64_t>(0, Number(processes_ + "/pids.current")); }

int64_t TaskFence::KilledForMemory() const {
  if (memory_.empty()) return 0;
  const std::string file = memory_ + (IsV2() ? "/memory.events" : "/memory.oom_control");
  return std::max<int64_t>(0, Number(file, "oom_kill"));
}

bool TaskFence::IsOutOfMemory(Bytes limit) const {
  if (limit.value <= 0 || KilledForMemory() == 0) return false;
  // The kernel also counts those that it has killed because the machine had none left.
  if (IsV2()) return Number(memory_ + "/memory.events", "oom") > 0;
  // Version 1 does not tell these apart, nor, by now, how often the limit was reached. It takes memory in
  // pieces, of which the last may not fit.
  const int64_t most = Number(memory_ + "/memory.max_usage_in_bytes");
  return most >= limit.value - limit.value / 16;
}

Fence Fence::Detect(const std::string& node, Wanted wanted) {
  CgroupMounts mounts = ReadCgroupMounts();
  return In({mounts.v2, mounts.v1["memory"], mounts.v1["pids"]}, node, wanted);
}

Fence Fence::In(const Mounts& mounts, const std::string& node, Wanted wanted) {
  const auto root = [&](const std::string& controller, const std::string& mount1) {
    const std::string root2 = Root2(mounts.cgroup2, node, controller);
    return root2.empty() ? Root1(mount1, node) : root2;
  };
  Fence fence;
  fence.wanted_ = wanted;
  // Looked for even if it is not wanted: there may be tasks of an agent that wanted it.
  fence.memory_root_ = root("memory", mounts.memory1);
  fence.pids_root_ = root("pids", mounts.pids1);
  std::vector<std::string> missing;
  if (wanted.memory && fence.memory_root_.empty()) missing.push_back("memory");
  if (wanted.processes && fence.pids_root_.empty()) missing.push_back("pids");
  if (!missing.empty())
    fence.problem_ = absl::StrCat("this machine has no cgroup controller for ", absl::StrJoin(missing, ", "));
  return fence;
}

FenceLimits Fence::Limits(Bytes memory, int64_t processes) const {
  return {wanted_.memory && !memory_root_.empty() ? memory : Bytes{0},
          wanted_.processes && !pids_root_.empty() ? processes : 0};
}

TaskFence Fence::For(const std::string& task) const {
  return {memory_root_.empty() ? "" : memory_root_ + "/" + task,
          pids_root_.empty() ? "" : pids_root_ + "/" + task};
}

absl::StatusOr<Fence::Wanted> ParseFence(const std::string& text) {
  Fence::Wanted wanted{false, false};
  if (text == "none") return wanted;
  for (absl::string_view kind : absl::StrSplit(text, ',')) {
    if (kind != "memory" && kind != "pids")
      return absl::InvalidArgumentError(absl::StrCat("expected memory, pids, both or none, got ", text));
    (kind == "memory" ? wanted.memory : wanted.processes) = true;
  }
  return wanted;
}

void EndOomProtection(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  char sign = 0;
  // A process that may lower it also sets the least value that it can be set to.
  if (read(fd, &sign, 1) == 1 && sign == '-' && pwrite(fd, "0\n", 2, 0) < 0) {
    // It stays as it is.
  }
  close(fd);
}

}  // namespace siding
