// What the kernel keeps for processes beside their memory and files, by its texts in /proc: what CRIU would
// drop without a word, or put into an image that no restore takes. Pure functions; an empty reason: there is
// none. docs/admin/checkpoints.md has the table of all of it.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agent/criu/criu.h"

namespace siding {

// Of a process, by where its link `exe` leads: one in memory has no file to be mapped from again.
std::string WhyNotDumpableProgram(const std::string& exe);

// Of an open file or working folder in /proc, by its name there: CRIU opens those of a process when there is
// that process again, and there are no threads yet.
std::string WhyNotDumpableProcFile(const std::string& target);

// By the text of /proc/PID/maps: valgrind unmaps the half of it that CRIU looks for.
std::string WhyNotDumpableMaps(const std::string& maps);

// By the texts of /proc/PID/stat and status. Only the leader of a session has its controlling terminal again:
// what sets groups in the foreground of it, as shells do for their jobs, cannot any more. Such a one ignores
// SIGTTOU.
std::string WhyNotDumpableShell(pid_t pid, const std::string& stat, const std::string& status);

// By the text of /proc/PID/status: who has other ids than the CRIU that has no CAP_SYS_RESOURCE. A program
// with setuid or setgid keeps one of them as its saved one when it gives up what it was given, as ssh-agent.
std::string WhyNotDumpableOwner(const std::string& status, const DumpingCriu::Ids& criu);

// By the texts of /proc/PID/stat of a tree: one on a terminal of which nobody of its session is in the
// foreground, as between two commands of a shell, or behind the last of them. CRIU's own way fails at each
// restore of it. The number of texts: there is none.
size_t FindForegroundEnded(const std::vector<std::string>& stats);

// By the text of /proc/PID/personality. Ours restores all but READ_IMPLIES_EXEC. Another loses all: setarch
// -R alone (ADDR_NO_RANDOMIZE) is for programs that are begun later, and what they compute does not depend on
// it.
std::string WhyNotDumpablePersonality(const std::string& text, CriuKind criu);

// Of an eventfd or a pipe, by its text in /proc/PID/fdinfo.
std::string WhyNotDumpableEventfd(const std::string& fdinfo, CriuKind criu);
std::string WhyNotDumpablePipe(const std::string& fdinfo);

// Of a socket, by what the kernel calls its protocol: "TCPv6".
std::string WhyNotDumpableSocket(const std::string& protocol);

// Of an open file in a file system of cgroups, by its name and the text of the process's /proc/PID/cgroup: a
// restored job has other cgroups.
std::string WhyNotDumpableCgroupFile(const std::string& target, const std::string& cgroups);

// The sockets in a text of /proc/PID/net/udp, raw or the like that have something which their process has not
// taken yet; of tcp, connections.
std::set<uint64_t> SocketsWithUnread(const std::string& text, bool is_tcp);

// A group of addresses in which some socket is on one of the machine's interfaces.
struct MulticastGroup {
  unsigned interface = 0;
  sockaddr_storage address = {};
};
// Those in a text of /proc/PID/net/igmp or igmp6, but for the kernel's own.
std::vector<MulticastGroup> ParseIgmp(const std::string& text);
std::vector<MulticastGroup> ParseIgmp6(const std::string& text);
std::string NameOf(const MulticastGroup& group);  // "239.1.2.3"

}  // namespace siding
