#include "agent/checkpoint/thread_settings.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "nlohmann/json.hpp"

namespace siding {
namespace {

constexpr int kOfThread = 1;  // IOPRIO_WHO_PROCESS
constexpr int kMostCpus = 8192;

std::string Line(const std::string& file) {
  return std::string(absl::StripAsciiWhitespace(ReadFile(file).value_or("")));
}

// The text behind "Key:" in a text of /proc/PID/status.
std::string Value(const std::string& status, const std::string& key) {
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::StartsWith(line, key + ":"))
      return std::string(absl::StripAsciiWhitespace(line.substr(key.size() + 1)));
  }
  return "";
}

// All that it has; nullopt: it is gone.
std::optional<ThreadSettings> SettingsOf(pid_t pid, pid_t thread) {
  const auto status = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/status"));
  if (!status.ok()) return std::nullopt;
  ThreadSettings settings;
  const std::string pids = Value(*status, "NSpid");  // "4711 17"
  if (!absl::SimpleAtoi(pids.substr(pids.find_last_of("\t ") + 1), &settings.thread)) return std::nullopt;
  settings.cpus = Value(*status, "Cpus_allowed_list");
  settings.io_priority = static_cast<int>(syscall(SYS_ioprio_get, kOfThread, thread));
  if (!absl::SimpleAtoi(Line(absl::StrCat("/proc/", thread, "/timerslack_ns")), &settings.timer_slack_ns))
    settings.timer_slack_ns = -1;
  if (thread == pid) settings.core_dump_filter = Line(absl::StrCat("/proc/", pid, "/coredump_filter"));
  return settings;
}

// Calls `visit` for each thread of the tree, with its process.
template <typename Visit>
void ForEachThread(pid_t root, Visit visit) {
  for (const pid_t pid : ProcessTree(root)) {
    for (const pid_t thread : ThreadIdsOf(pid)) visit(pid, thread);
  }
}

bool Put(const std::string& file, const std::string& text) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// On all of these, or on those that it has now.
bool PutCpus(pid_t thread, const std::string& list, const std::set<int>& there) {
  const std::vector<int> cpus = ParseCpus(list);
  if (cpus.empty() || !std::all_of(cpus.begin(), cpus.end(), [&](int cpu) { return there.contains(cpu); }))
    return false;
  const size_t size = CPU_ALLOC_SIZE(kMostCpus);
  const auto release = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(release)> set(CPU_ALLOC(kMostCpus), release);
  CPU_ZERO_S(size, set.get());
  for (const int cpu : cpus) CPU_SET_S(cpu, size, set.get());
  return sched_setaffinity(thread, size, set.get()) == 0;
}

}  // namespace

std::vector<int> ParseCpus(const std::string& list) {
  std::vector<int> cpus;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::vector<std::string> ends = absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = -1, last = -1;
    if (!absl::SimpleAtoi(ends[0], &first) || !absl::SimpleAtoi(ends.back(), &last) || first < 0 ||
        last < first || last >= kMostCpus)
      return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<ThreadSettings> RecordThreadSettings(pid_t root) {
  std::vector<ThreadSettings> others;
  const auto usual = SettingsOf(root, root);
  if (!usual) return others;
  ForEachThread(root, [&](pid_t pid, pid_t thread) {
    auto settings = SettingsOf(pid, thread);
    if (!settings) return;
    const ThreadSettings none{settings->thread, "", -1, -1, ""};
    if (settings->cpus == usual->cpus) settings->cpus.clear();
    if (settings->io_priority == usual->io_priority) settings->io_priority = -1;
    if (settings->timer_slack_ns == usual->timer_slack_ns) settings->timer_slack_ns = -1;
    if (settings->core_dump_filter == usual->core_dump_filter) settings->core_dump_filter.clear();
    if (*settings != none) others.push_back(*settings);
  });
  return others;
}

std::string ThreadSettingsToJson(const std::vector<ThreadSettings>& settings) {
  nlohmann::json list = nlohmann::json::array();
  for (const ThreadSettings& one : settings) {
    list.push_back({{"thread", one.thread},
                    {"cpus", one.cpus},
                    {"io_priority", one.io_priority},
                    {"timer_slack_ns", one.timer_slack_ns},
                    {"core_dump_filter", one.core_dump_filter}});
  }
  return list.dump();
}

absl::StatusOr<std::vector<ThreadSettings>> ThreadSettingsFromJson(const std::string& json) {
  try {
    std::vector<ThreadSettings> settings;
    for (const auto& item : nlohmann::json::parse(json)) {
      settings.push_back({item.at("thread").get<pid_t>(), item.at("cpus").get<std::string>(),
                          item.at("io_priority").get<int>(), item.at("timer_slack_ns").get<int64_t>(),
                          item.at("core_dump_filter").get<std::string>()});
    }
    return settings;
  } catch (const nlohmann::json::exception& error) {
    return absl::DataLossError(absl::StrCat("the image's list of its threads' settings: ", error.what()));
  }
}

std::vector<std::string> PutThreadSettingsBack(pid_t root, const std::vector<ThreadSettings>& settings) {
  std::vector<std::string> notes;
  if (settings.empty()) return notes;
  std::map<pid_t, const ThreadSettings*> wanted;
  for (const ThreadSettings& one : settings) wanted[one.thread] = &one;
  const auto usual = SettingsOf(root, root);
  const std::vector<int> cpus = ParseCpus(usual ? usual->cpus : "");
  const std::set<int> there(cpus.begin(), cpus.end());
  std::set<std::string> missing;
  ForEachThread(root, [&](pid_t pid, pid_t thread) {
    const auto now = SettingsOf(pid, thread);
    const auto is = now ? wanted.find(now->thread) : wanted.end();
    if (is == wanted.end()) return;
    const ThreadSettings& was = *is->second;
    if (!was.cpus.empty() && !PutCpus(thread, was.cpus, there)) missing.insert(was.cpus);
    if (was.io_priority >= 0) syscall(SYS_ioprio_set, kOfThread, thread, was.io_priority);
    if (was.timer_slack_ns >= 0)
      Put(absl::StrCat("/proc/", thread, "/timerslack_ns"), absl::StrCat(was.timer_slack_ns));
    if (!was.core_dump_filter.empty())
      Put(absl::StrCat("/proc/", pid, "/coredump_filter"), "0x" + was.core_dump_filter);
  });
  for (const std::string& list : missing)
    notes.push_back(absl::StrCat("threads that ran on the CPUs ", list,
                                 " only, which it does not have here, run on all that it has"));
  return notes;
}

}  // namespace siding
