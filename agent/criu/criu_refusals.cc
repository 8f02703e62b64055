// What CRIU writes when it does not dump something, and what that means for a job. CRIU's own words name
// inodes and addresses, and advise options of its command line.
#include <array>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "agent/criu/criu.h"

namespace siding {
namespace {

using Found = std::array<std::string, 4>;

struct Known {
  absl::string_view said;  // "*": anything
  absl::string_view why;   // "$0": what the first "*" stands for
  bool passes = false;
};

constexpr char kOutsideSocket[] =
    "one of its processes is connected by a Unix socket to a program outside of the job";
constexpr char kClosedPeer[] =
    "one of its processes has a Unix socket whose other end no process of the job has open any more";
constexpr char kTerminal[] = "one of its processes uses a terminal from outside of the job";
constexpr char kMapping[] = "one of its processes has mapped something that cannot be saved";
constexpr char kUnixWaits[] =
    "a connection to one of its Unix sockets waits to be accepted, and its client has sent or closed already";
constexpr char kThreads[] = "a thread of one of its processes was just ending, or is stopped alone";
constexpr char kNetlink[] = "one of its processes has a netlink socket of a kind that cannot be saved";
constexpr char kSharedMemory[] =
    "one of its processes has System V shared memory in a way that cannot be saved";

// The more special of two comes first.
constexpr Known kKnown[] = {
    // TCP, UDP.
    {"In-flight connection (l) for *", "a TCP connection to one of its processes waits to be accepted", true},
    {"Unknown inet socket * state *", "a TCP connection is just being made or closed", true},
    {"Connected TCP socket, consider*",
     "one of its processes has a TCP connection that leads out of the job"},
    {"Can't dump corked dgram socket *",
     "one of its processes has a UDP packet under way that it has not finished (UDP_CORK)", true},
    {"Unsupported proto 262 for socket *",
     "one of its processes has an MPTCP socket, which cannot be saved; Go programs make none with "
     "GODEBUG=multipathtcp=0"},
    {"Unsupported proto * for socket *",
     "one of its processes has a socket of protocol $0, which cannot be saved"},
    {"Can't dump * inet socket *",
     "one of its processes has an internet socket of type $0, which cannot be saved"},
    {"State of TCP connection * has changed *", "a TCP connection is just being made or closed", true},
    {"Failed to lock TCP connection *",
     "the packets of its TCP connections could not be held back (by nftables of this node)"},
    // Unix sockets.
    {"External socket is used. *", kOutsideSocket},
    {"Can't dump half of stream unix connection. name: *; peer name: (null)", kOutsideSocket},
    {"Can't dump half of stream unix connection. name: *; peer name: *",
     "one of its processes is connected by a Unix socket to a program outside of the job ($1)"},
    {"Can't dump name-less external socket.*", kOutsideSocket},
    {"Dangling connection *", kClosedPeer},
    {"Unix socket * without peer *", kClosedPeer},
    {"Unix socket * with unreachable peer *", kOutsideSocket},
    {"In-flight connection on non-listening socket *", kUnixWaits, true},
    {"Non-empty write queue on an in-flight socket *", kUnixWaits, true},
    {"Found a closed in-flight socket to *", kUnixWaits, true},
    {"Unsupported type (*) on socket *",
     "one of its processes has a Unix socket of type $0, which cannot be saved"},
    {"Unknown state * for unix socket *",
     "a connection of one of its Unix sockets is just being made or closed", true},
    // Other sockets.
    {"The socket has data to read",
     "one of its processes has a netlink socket with messages that it has not read", true},
    {"The netlink socket * has more than 32 groups", kNetlink},
    {"The netlink socket * is bound to groups but not to portid", kNetlink},
    {"Sockets (family * proto *) are not collected",
     "one of its processes has a socket of family $0, protocol $1, which cannot be saved"},
    {"BUG! Unknown socket collected (family *)",
     "one of its processes has a socket of family $0, which cannot be saved"},
    {"Multiple MC membership not supported*",
     "one of its processes has a packet socket of a kind that cannot be saved"},
    // Files.
    {"Can't dump file * of that type [*] (*)",
     "one of its processes has something open that cannot be saved ($2)"},
    {"Can't dump ghost file * of * size, increase limit",
     "one of its processes has $0 open, which was removed and has $1 bytes: more than 256 MiB of a removed "
     "file "
     "cannot be saved"},
    {"Can't create link remap for *. Use *",
     "one of its processes has $0 open, which was removed there and has another name (a hard link) "
     "elsewhere"},
    {"Can't link remap to *",
     "one of its processes has $0 open, which was removed there and has another name (a hard link) "
     "elsewhere"},
    {"Unaccessible path opened *",
     "one of its processes has a file open that was removed or renamed, and another file has its name now"},
    {"Can't lookup mount=* for fd=* path=*",
     "one of its processes has $2 open, which is in no file system that the job sees, such as a message "
     "queue "
     "(mq_open)"},
    {"Open files on overmounted mounts are not supported yet; mount=* fd=* path=*",
     "one of its processes has $2 open, and something else has been mounted there since"},
    {"The path [*] is not supported", "one of its processes has $0 open, which has no path"},
    {"Can't find suitable path for handle *",
     "one of its processes watches a file (inotify) that was removed or renamed"},
    {"Can't dump that handle", "one of its processes watches a file (inotify) that was removed or renamed"},
    {"Escaped/closed fd descriptor *",
     "one of its processes watches a file (epoll) that it has closed, and another process has open"},
    {"PIDFD_THREAD flag is currently not supported", "one of its processes has a pidfd of a thread"},
    {"pidfd pid * is not a part of process tree*",
     "one of its processes has a pidfd of a process outside of the job"},
    {"The packetized mode for pipes is not supported yet",
     "one of its processes has a pipe in packet mode (O_DIRECT)"},
    {"Found dangling tty *", kTerminal},
    {"Found slave peer index *", kTerminal},
    {"Only one slave external peer *", kTerminal},
    {"ctty inheritance detected *", kTerminal},
    {"The tty (*) queued data overflow *", "a terminal of the job holds more input than can be saved", true},
    {"Net namespace is required to dump tun link",
     "one of its processes has a network device (tun) of its own"},
    // Memory.
    {"Task * with SysVIPC shmem map *",
     "one of its processes has System V shared memory of another IPC namespace"},
    {"Sysv shmem * not supported", kSharedMemory},
    {"Sysv shmem * misordered attach chunks", kSharedMemory},
    {"SysV shmem vma * points to anon vma *", kSharedMemory},
    {"Strange file mapped at *", kMapping},
    {"Can't handle non-regular mapping *", kMapping},
    {"Unsupported mapping found *", kMapping},
    {"Can't dump high memory region *", kMapping},
    {"PID * has uprobes vma*", "one of its processes is being traced (uprobes)"},
    // Processes.
    {"Can't dump nested * namespace for *",
     "one of its processes has a namespace of its own ($0), as programs in a container or a sandbox have"},
    {"Unseizable non-zombie * found, *", "one of its processes cannot be stopped; a debugger may trace it"},
    {"Can't dump the * thread with a pending SIGTRAP*", "one of its processes is at a breakpoint"},
    {"Timeout reached. Try to interrupt: *",
     "its processes could not be stopped in 10 s: one of them waits for a file system or a device, which "
     "does not "
     "answer"},
    {"A session leader of * is outside of its pid namespace",
     "one of its processes belongs to a session that was begun outside of the job"},
    {"Zombies with threads are not supported", kThreads, true},
    {"Zombie thread not supported", kThreads, true},
    {"Individually stopped threads not supported", kThreads, true},
    {"Task pid reused while suspending *", "one of its processes was just ending", true},
    {"A root task is dead", "it has ended"},
    {"Can't get rlimit *",
     "siding's agent on this node may not save processes of other users: it has no CAP_SYS_RESOURCE, and its "
     "criu "
     "was not run as the job's user"},
    // A restore.
    {"Can't bind inet socket *: Address already in use",
     "a port that one of its sockets has is in use on this node"},
};

// Whether the text is of that form; what its stars stand for.
std::optional<Found> Match(absl::string_view form, absl::string_view text) {
  Found found;
  size_t star = form.find('*');
  if (star == absl::string_view::npos) {
    if (form == text) return found;
    return std::nullopt;
  }
  if (text.substr(0, star) != form.substr(0, star)) return std::nullopt;
  text.remove_prefix(star);
  for (size_t n = 0; star != absl::string_view::npos; ++n) {
    form.remove_prefix(star + 1);
    star = form.find('*');
    const absl::string_view next = form.substr(0, star);
    size_t at = next.empty() ? text.size() : text.find(next);
    // The last words are at the end of the text.
    if (star == absl::string_view::npos && !next.empty()) at = text.rfind(next);
    const bool fits =
        at != absl::string_view::npos && (star != absl::string_view::npos || at + next.size() == text.size());
    if (!fits) return std::nullopt;
    if (n < found.size()) found[n] = std::string(text.substr(0, at));
    text.remove_prefix(at + next.size());
  }
  return found;
}

}  // namespace

std::optional<CriuRefusal> KnownRefusal(absl::string_view message) {
  // "inet: In-flight connection"
  const size_t part = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_");
  if (part != absl::string_view::npos && message.substr(part, 2) == ": ") message.remove_prefix(part + 2);
  message = absl::StripLeadingAsciiWhitespace(message);
  for (const Known& known : kKnown) {
    if (const auto found = Match(known.said, message))
      return CriuRefusal{absl::Substitute(known.why, (*found)[0], (*found)[1], (*found)[2]), known.passes};
  }
  return std::nullopt;
}

}  // namespace siding
