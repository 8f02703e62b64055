#include "agent/checkpoint/kernel_state.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siding {
namespace {

constexpr char kListening[] = "0A";

// The flags in a text of fdinfo; 0: it has none.
unsigned FlagsOf(const std::string& fdinfo) {
  unsigned flags = 0;
  for (const absl::string_view line : absl::StrSplit(fdinfo, '\n'))
    std::sscanf(std::string(line).c_str(), "flags: %o", &flags);
  return flags;
}

bool IsNumber(absl::string_view text) {
  int64_t number = 0;
  return absl::SimpleAtoi(text, &number) && number > 0;
}

}  // namespace

std::string WhyNotDumpableProgram(const std::string& exe) {
  return absl::StartsWith(exe, "/memfd:") ? "runs from memory (memfd), which has no file to be restored from"
                                          : "";
}

std::string WhyNotDumpableProcFile(const std::string& target) {
  const std::vector<std::string> names =
      absl::StrSplit(absl::StripSuffix(target, " (deleted)"), '/');  // "", "proc", "17", "task", "18", "stat"
  if (names.size() < 3 || names[1] != "proc" || !IsNumber(names[2])) return "";
  const bool of_thread = names.size() > 4 && names[3] == "task" && names[4] != names[2];
  if (of_thread) return absl::StrCat("has ", target, " open, of a thread, which cannot be opened again");
  const bool folder = names.size() == 3;
  return folder ? absl::StrCat("has the folder ", target, " open, which cannot be opened again") : "";
}

std::string WhyNotDumpableMaps(const std::string& maps) {
  const bool half = absl::StrContains(maps, " [vvar") && !absl::StrContains(maps, " [vdso]");
  return half ? "has unmapped the kernel's vdso, as valgrind does, and could not be restored" : "";
}

std::string WhyNotDumpableShell(pid_t pid, const std::string& stat, const std::string& status) {
  const size_t name_end = stat.rfind(')');
  int group = 0, session = 0, terminal = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat.c_str() + name_end, ") %*c %*d %d %d %d", &group, &session, &terminal) != 3 ||
      terminal == 0 || session == pid || group != pid)
    return "";
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    unsigned long long ignored = 0;
    if (std::sscanf(std::string(line).c_str(), "SigIgn: %llx", &ignored) == 1 &&
        (ignored >> (SIGTTOU - 1) & 1) != 0)
      return "is a shell with jobs on a terminal, of which it is not the first process (setsid), and would "
             "lose the terminal";
  }
  return "";
}

std::string WhyNotDumpableOwner(const std::string& status, const DumpingCriu::Ids& criu) {
  for (const absl::string_view text : absl::StrSplit(status, '\n')) {
    const std::string line(text);
    unsigned real = 0, effective = 0, saved = 0;
    const bool user = std::sscanf(line.c_str(), "Uid: %u %u %u", &real, &effective, &saved) == 3;
    const bool group = !user && std::sscanf(line.c_str(), "Gid: %u %u %u", &real, &effective, &saved) == 3;
    const unsigned own = user ? criu.uid : criu.gid;
    if ((!user && !group) || (real == own && effective == own && saved == own)) continue;
    return absl::StrCat(
        "has the ", user ? "user " : "group ",
        real != own        ? real
        : effective != own ? effective
                           : saved,
        ", as programs with ", user ? "setuid" : "setgid",
        " do: without CAP_SYS_RESOURCE, which this node's agent lacks, the kernel does not let its limits "
        "(prlimit) be read");
  }
  return "";
}

size_t FindForegroundEnded(const std::vector<std::string>& stats) {
  struct Place {
    int group = 0, session = 0, terminal = 0, foreground = 0;
  };
  std::vector<Place> places(stats.size());
  for (size_t i = 0; i < stats.size(); ++i) {
    const size_t name_end = stats[i].rfind(')');
    Place& at = places[i];
    if (name_end == std::string::npos ||
        std::sscanf(stats[i].c_str() + name_end, ") %*c %*d %d %d %d %d", &at.group, &at.session,
                    &at.terminal, &at.foreground) != 4)
      at = {};
  }
  const auto has_ended = [&](const Place& at) {
    return at.terminal != 0 && at.foreground > 0 &&
           std::none_of(places.begin(), places.end(), [&](const Place& other) {
             return other.session == at.session && other.group == at.foreground;
           });
  };
  return std::find_if(places.begin(), places.end(), has_ended) - places.begin();
}

std::string WhyNotDumpablePersonality(const std::string& text, CriuKind criu) {
  const unsigned long is = std::strtoul(text.c_str(), nullptr, 16);
  const unsigned long lost =
      criu == CriuKind::kOurs ? static_cast<unsigned long>(READ_IMPLIES_EXEC) : ~0UL ^ ADDR_NO_RANDOMIZE;
  if ((is & lost) == 0) return "";
  return absl::StrCat("has a personality of its own (setarch: ", absl::Hex(is, absl::kZeroPad8),
                      "), which would be lost");
}

std::string WhyNotDumpableEventfd(const std::string& fdinfo, CriuKind criu) {
  if (criu == CriuKind::kOurs) return "";
  for (const absl::string_view line : absl::StrSplit(fdinfo, '\n')) {
    int semaphore = 0;
    if (std::sscanf(std::string(line).c_str(), "eventfd-semaphore: %d", &semaphore) == 1 && semaphore != 0)
      return "has an eventfd that counts as a semaphore (EFD_SEMAPHORE), which would be another kind";
  }
  return "";
}

std::string WhyNotDumpablePipe(const std::string& fdinfo) {
  return (FlagsOf(fdinfo) & O_DIRECT) != 0 ? "has a pipe of packets (O_DIRECT)" : "";
}

std::string WhyNotDumpableSocket(const std::string& protocol) {
  static constexpr const char* kKnown[] = {"TCP",       "TCPv6",       "UDP",   "UDPv6",  "UDP-Lite",
                                           "UDPLITEv6", "RAW",         "RAWv6", "PING",   "PINGv6",
                                           "UNIX",      "UNIX-STREAM", "",      "PACKET", "NETLINK"};
  if (std::find(std::begin(kKnown), std::end(kKnown), protocol) != std::end(kKnown)) return "";
  const std::string advice =
      absl::StartsWith(protocol, "MPTCP") ? "; programs in Go use TCP with GODEBUG=multipathtcp=0" : "";
  return absl::StrCat("has a socket of the kind ", protocol, advice);
}

std::string WhyNotDumpableCgroupFile(const std::string& target, const std::string& cgroups) {
  if (!absl::StartsWith(target, "/sys/fs/cgroup/")) return "";
  for (const absl::string_view line : absl::StrSplit(cgroups, '\n')) {  // "4:memory:/siding/n1/7"
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() == 3 && parts[2].size() > 1 && absl::StrContains(target + "/", parts[2] + "/"))
      return absl::StrCat("has ", target, " open, of its own cgroup: a restored job has another one");
  }
  return "";
}

std::set<uint64_t> SocketsWithUnread(const std::string& text, bool is_tcp) {
  std::set<uint64_t> sockets;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the headings
  while (std::getline(lines, line)) {
    // "  12: 0100007F:1F90 00000000:0000 07 00000000:00000300 00:00000000 00000000 0 0 4711 2 ..."
    char state[3] = "";
    unsigned unread = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %*s %*s %2s %*x:%x %*s %*s %*s %*s %lu", state, &unread, &inode) != 3)
      continue;
    if (unread != 0 && inode != 0 && (!is_tcp || std::strcmp(state, kListening) == 0)) sockets.insert(inode);
  }
  return sockets;
}

std::vector<MulticastGroup> ParseIgmp(const std::string& text) {
  std::vector<MulticastGroup> groups;
  std::istringstream lines(text);
  unsigned interface = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] != '\t') {
      interface = static_cast<unsigned>(std::strtoul(line.c_str(), nullptr, 10));
      continue;
    }
    unsigned address = 0;  // in the order of the network
    if (std::sscanf(line.c_str(), " %x", &address) != 1 || address == htonl(INADDR_ALLHOSTS_GROUP)) continue;
    MulticastGroup group{interface, {}};
    sockaddr_in ip = {};
    ip.sin_family = AF_INET;
    ip.sin_addr.s_addr = address;
    std::memcpy(&group.address, &ip, sizeof ip);
    groups.push_back(group);
  }
  return groups;
}

std::vector<MulticastGroup> ParseIgmp6(const std::string& text) {
  std::vector<MulticastGroup> groups;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    unsigned interface = 0;
    char digits[33] = "";
    if (std::sscanf(line.c_str(), "%u %*s %32s", &interface, digits) != 2) continue;
    const std::string address = absl::AsciiStrToLower(digits);
    // All nodes, and those by which an interface is asked for its address.
    if (address.size() != 32 || address.find_first_not_of("0123456789abcdef") != std::string::npos ||
        address == "ff020000000000000000000000000001" || address == "ff010000000000000000000000000001" ||
        absl::StartsWith(address, "ff0200000000000000000001ff"))
      continue;
    MulticastGroup group{interface, {}};
    sockaddr_in6 ip = {};
    ip.sin6_family = AF_INET6;
    const std::string bytes = absl::HexStringToBytes(address);
    if (bytes.size() != sizeof ip.sin6_addr) continue;
    std::memcpy(&ip.sin6_addr, bytes.data(), bytes.size());
    std::memcpy(&group.address, &ip, sizeof ip);
    groups.push_back(group);
  }
  return groups;
}

std::string NameOf(const MulticastGroup& group) {
  char text[INET6_ADDRSTRLEN] = "";
  sockaddr_in v4 = {};
  sockaddr_in6 v6 = {};
  std::memcpy(&v4, &group.address, sizeof v4);
  std::memcpy(&v6, &group.address, sizeof v6);
  if (group.address.ss_family == AF_INET) inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  if (group.address.ss_family == AF_INET6) inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return text;
}

}  // namespace siding
