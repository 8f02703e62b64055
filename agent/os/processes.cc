#include "agent/os/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

std::string ProcPath(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

// The entries of a folder that are numbers.
std::vector<int> Numbers(const std::string& folder) {
  std::vector<int> numbers;
  std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (!entries) return numbers;
  while (const dirent* entry = readdir(entries.get())) {
    int number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  return numbers;
}

// What a symbolic link says; empty if it cannot be read.
std::string LinkText(const std::string& path) {
  char text[PATH_MAX];
  const ssize_t size = readlink(path.c_str(), text, sizeof text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

// As far as the kernel knows both already: no file system is asked.
bool IsSameFile(const std::string& link, int fd) {
  struct statx a {
  }, b{};
  return statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &a) == 0 &&
         statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &b) == 0 && a.stx_ino == b.stx_ino &&
         a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;
}

// The value in "Key:   12 kB"; the last one of several. -1 if there is no such line.
int64_t FindNumber(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, key.size() + 1, key + ":") != 0) continue;
    std::istringstream words(line.substr(key.size() + 1));
    int64_t value = -1;
    for (int64_t word; words >> word;) value = word;
    return value;
  }
  return -1;
}

bool HasEnded(const std::optional<ProcessStat>& stat) {
  return !stat || (stat->state == 'Z' && stat->threads <= 1);
}

// Each of its threads has children of its own.
std::vector<pid_t> ChildrenOf(const ProcessStat& process) {
  const std::string threads = ProcPath(process.pid, "task");
  std::vector<pid_t> children;
  for (int thread : process.threads == 1 ? std::vector<int>{process.pid} : Numbers(threads)) {
    const auto text = ReadFile(absl::StrCat(threads, "/", thread, "/children"));
    if (!text.ok()) continue;
    for (absl::string_view word : absl::StrSplit(*text, ' ', absl::SkipEmpty())) {
      pid_t child = 0;
      if (absl::SimpleAtoi(word, &child)) children.push_back(child);
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

// From parents to children: what it costs does not depend on how many others the machine has.
std::vector<pid_t> Descend(pid_t root) {
  std::vector<pid_t> tree;
  std::vector<ProcessStat> stats;
  std::set<pid_t> seen;
  const auto add = [&](pid_t pid) {
    const auto stat = seen.insert(pid).second ? ReadProcessStat(pid) : std::nullopt;
    if (HasEnded(stat)) return;
    tree.push_back(pid);
    stats.push_back(*stat);
  };
  add(root);
  for (size_t i = 0; i < tree.size(); ++i) {
    for (pid_t child : ChildrenOf(stats[i])) add(child);
  }
  return tree;
}

// By the parents of all processes of the machine.
std::vector<pid_t> SearchAll(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  bool found = false;
  for (pid_t pid : Numbers("/proc")) {
    const auto stat = ReadProcessStat(pid);
    if (HasEnded(stat)) continue;
    children.emplace(stat->parent, pid);
    found |= pid == root;
  }
  if (!found) return {};
  std::vector<pid_t> tree = {root};
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto it = begin; it != end; ++it) tree.push_back(it->second);
  }
  return tree;
}

}  // namespace

std::optional<ProcessStat> ParseProcessStat(const std::string& text) {
  // The name in parentheses may contain anything, parentheses included: count from the last one.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  stat.pid = std::atoi(text.c_str());
  std::istringstream rest(text.substr(name_end + 1));
  rest >> stat.state >> stat.parent;
  uint64_t value = 0;
  for (int field = 5; field <= 22; ++field) {
    // Some fields (tty, nice) are negative; they are skipped as words.
    std::string word;
    if (!(rest >> word)) return std::nullopt;
    std::from_chars(word.data(), word.data() + word.size(), value);
    if (field == 14 || field == 15) stat.cpu_ticks += value;
    if (field == 20) stat.threads = static_cast<int64_t>(value);
    if (field == 22) stat.start_time = value;
  }
  return stat;
}

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  auto text = ReadFile(ProcPath(pid, "stat"));
  if (!text.ok()) return std::nullopt;
  return ParseProcessStat(*text);
}

bool IsAlive(pid_t pid, uint64_t start_time) {
  const auto stat = ReadProcessStat(pid);
  return stat && stat->start_time == start_time && stat->state != 'Z' && stat->state != 'X';
}

absl::StatusOr<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid()) return ErrnoError(errno, "pidfd_open");
  return fd;
}

std::optional<ProcessStat> OldestWithOpen(int fd) {
  const std::string file = LinkText("/proc/self/fd/" + std::to_string(fd));
  std::optional<ProcessStat> oldest;
  for (pid_t pid : Numbers("/proc")) {
    if (pid == getpid()) continue;
    const std::string folder = ProcPath(pid, "fd");
    const std::vector<int> fds = Numbers(folder);
    // By name first: looking at the file itself may take for ever where a server is away. In a user's own
    // namespaces a name may look like any other.
    const auto is_it = [&](int other) {
      const std::string link = folder + "/" + std::to_string(other);
      return LinkText(link) == file && IsSameFile(link, fd);
    };
    if (std::none_of(fds.begin(), fds.end(), is_it)) continue;
    const auto stat = ReadProcessStat(pid);
    if (stat && (!oldest || stat->start_time < oldest->start_time)) oldest = stat;
  }
  return oldest;
}

std::vector<pid_t> ProcessTree(pid_t root) {
  // One look may miss who moves meanwhile: whose parent ends, or who stands behind one that does. Two that
  // are the same have not. Where processes come and go all the time no two are.
  static const bool kTellsChildren = access("/proc/thread-self/children", R_OK) == 0;  // CONFIG_PROC_CHILDREN
  constexpr int kLooks = 4;
  std::vector<pid_t> before;
  for (int look = 0; kTellsChildren && look < kLooks; ++look) {
    std::vector<pid_t> tree = Descend(root);
    if (look > 0 && tree == before) return tree;
    before = std::move(tree);
  }
  return SearchAll(root);
}

int64_t ReadStatusNumber(pid_t pid, const std::string& key) {
  auto text = ReadFile(ProcPath(pid, "status"));
  return text.ok() ? FindNumber(*text, key) : -1;
}

std::vector<Traced> FindTraced(pid_t root) {
  std::vector<Traced> found;
  for (pid_t pid : ProcessTree(root)) {
    std::set<int64_t> tracers;
    const std::string threads = ProcPath(pid, "task");
    for (int thread : Numbers(threads)) {
      const auto status = ReadFile(threads + "/" + std::to_string(thread) + "/status");
      const int64_t tracer = status.ok() ? FindNumber(*status, "TracerPid") : 0;
      if (tracer > 0 && tracers.insert(tracer).second) found.push_back({pid, static_cast<pid_t>(tracer)});
    }
  }
  return found;
}

std::vector<std::string> CommandLineOf(pid_t pid) {
  auto text = ReadFile(ProcPath(pid, "cmdline"));
  if (!text.ok() || text->empty()) return {};
  if (text->back() == '\0') text->pop_back();
  return absl::StrSplit(*text, '\0');
}

bool WorksIn(pid_t pid, const std::string& folder) {
  const UniqueFd fd(open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  return fd.valid() && IsSameFile(ProcPath(pid, "cwd"), fd.get());
}

pid_t MainProcess(pid_t init, int first) {
  pid_t found = 0;
  for (pid_t pid : ProcessTree(init)) {
    const int64_t number = pid == init ? 0 : ReadStatusNumber(pid, "NSpid");
    // The kernel gives the small ones once: what has this one is the first whatever else has been started.
    if (number == 2) return pid;
    if (number == first) found = pid;
  }
  return found;
}

bool HearsSignal(pid_t pid, int signal) {
  if (pid <= 0 || signal < 1 || signal > 64) return false;
  const auto status = ReadFile(ProcPath(pid, "status"));
  if (!status.ok()) return false;
  const auto has = [&](const std::string& mask) {
    const size_t at = status->find("\n" + mask + ":");
    if (at == std::string::npos) return false;
    const uint64_t bits = std::strtoull(status->c_str() + at + mask.size() + 2, nullptr, 16);
    return (bits >> (signal - 1) & 1) != 0;
  };
  return !has("SigIgn") && (has("SigCgt") || has("SigBlk"));
}

bool IsStoppedBySignal(pid_t pid) {
  const auto stat = ReadProcessStat(pid);
  if (!stat) return false;
  if (stat->state == 'T') return true;
  // In a frozen cgroup its state is another, and it waits where it did.
  return stat->state == 'D' && ReadFile(ProcPath(pid, "wchan")).value_or("") == "do_signal_stop";
}

std::string ProgramOf(pid_t pid) {
  auto program = ReadFile("/proc/" + std::to_string(pid) + "/comm");
  if (program.ok() && !program->empty()) program->pop_back();
  return program.ok() ? *program : "?";
}

std::string NameOf(pid_t pid) { return absl::StrCat("process ", pid, " (", ProgramOf(pid), ")"); }

Bytes TreeMemory(pid_t root, std::atomic<pid_t>& at) {
  Bytes sum;
  for (pid_t pid : ProcessTree(root)) {
    at = pid;
    auto text = ReadFile(ProcPath(pid, "smaps_rollup"));
    int64_t kib = text.ok() ? FindNumber(*text, "Pss") : -1;
    if (kib < 0) kib = ReadStatusNumber(pid, "VmRSS");
    if (kib > 0) sum += Bytes{kib * 1024};
  }
  at = 0;
  return sum;
}

void AwaitMemory(pid_t root) {
  // Short, and read out of the process's own memory.
  for (pid_t pid : ProcessTree(root)) ReadFile(ProcPath(pid, "cmdline")).IgnoreError();
}

int64_t ThreadsOf(pid_t pid) { return std::max<int64_t>(0, ReadStatusNumber(pid, "Threads")); }

std::vector<pid_t> ThreadIdsOf(pid_t pid) { return Numbers(ProcPath(pid, "task")); }

Bytes TreeResident(pid_t root) {
  Bytes sum;
  for (pid_t pid : ProcessTree(root)) {
    if (const int64_t kib = ReadStatusNumber(pid, "VmRSS"); kib > 0) sum += Bytes{kib * 1024};
  }
  return sum;
}

Bytes AvailableMemory() {
  auto text = ReadFile("/proc/meminfo");
  const int64_t kib = text.ok() ? FindNumber(*text, "MemAvailable") : -1;
  return Bytes{std::max<int64_t>(0, kib) * 1024};
}

bool PollUntil(const std::function<bool()>& done, Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (auto pause = std::chrono::microseconds(500);;
       pause = std::min(2 * pause, std::chrono::microseconds(20000))) {
    if (done()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace siding
