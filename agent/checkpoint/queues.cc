#include "agent/checkpoint/queues.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/checkpoint/descriptors.h"
#include "agent/checkpoint/kernel_state.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"
#include "common/files.h"

namespace siding {
namespace {

constexpr char kInotify[] = "anon_inode:inotify";

int OptionOf(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : 0;
}

int BytesIn(int fd) {
  int bytes = 0;
  return ioctl(fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

bool HasName(int fd) {
  sockaddr_un address = {};
  socklen_t size = sizeof address;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         size > offsetof(sockaddr_un, sun_path);
}

// CRIU keeps the datagrams, not who has sent them; and takes none that says who its sender is.
std::string InUnixSocket(int fd) {
  if (OptionOf(fd, SO_DOMAIN) != AF_UNIX || OptionOf(fd, SO_ACCEPTCONN) != 0 || BytesIn(fd) == 0) return "";
  if (OptionOf(fd, SO_PASSCRED) != 0)
    return "has not read what has come to a socket that tells the sender (SO_PASSCRED)";
  if (OptionOf(fd, SO_TYPE) == SOCK_DGRAM && HasName(fd))
    return "has not read the datagrams that have come to its Unix socket";
  return "";
}

std::string Of(const OpenDescriptor& descriptor, const std::string& what) {
  return absl::StrCat(NameOf(descriptor.pid), " ", what);
}

class Queues {
 public:
  Queues(pid_t root, const std::vector<OpenDescriptor>& descriptors);
  std::string Find() const;

 private:
  std::string FindInTables() const;

  const pid_t root_;
  std::vector<OpenDescriptor> inet_, unix_, inotify_;
};

Queues::Queues(pid_t root, const std::vector<OpenDescriptor>& descriptors) : root_(root) {
  for (const OpenDescriptor& one : descriptors) {
    if (one.target == kInotify) inotify_.push_back(one);
    if (one.protocol.empty()) continue;
    (absl::StartsWith(one.protocol, "UNIX") ? unix_ : inet_).push_back(one);
  }
}

std::string Queues::FindInTables() const {
  for (const char* const table :
       {"udp", "udp6", "udplite", "udplite6", "raw", "raw6", "icmp", "icmp6", "tcp", "tcp6"}) {
    if (inet_.empty()) return "";
    const bool is_tcp = absl::StartsWith(table, "tcp");
    const auto text = ReadFile(absl::StrCat("/proc/", root_, "/net/", table));
    if (!text.ok()) continue;  // the kernel has not got this
    const std::set<uint64_t> unread = SocketsWithUnread(*text, is_tcp);
    for (const OpenDescriptor& one : inet_) {
      if (!unread.contains(one.socket)) continue;
      return Of(one, is_tcp ? "has not accepted a connection that has come to it"
                            : absl::StrCat("has not read the datagrams that have come to its socket (", table,
                                           ")"));
    }
  }
  return "";
}

std::string Queues::Find() const {
  if (std::string why = FindInTables(); !why.empty()) return why;
  for (const OpenDescriptor& one : inotify_) {
    const UniqueFd fd = Borrow(one);
    // It may be another file by now, of a file system of the job's own.
    if (!fd.valid() || TargetOf(absl::StrCat("/proc/self/fd/", fd.get())) != kInotify) continue;
    if (BytesIn(fd.get()) > 0) return Of(one, "has not read the events of files that it watches (inotify)");
  }
  for (const OpenDescriptor& one : unix_) {
    const UniqueFd fd = Borrow(one);
    if (std::string why = fd.valid() ? InUnixSocket(fd.get()) : ""; !why.empty()) return Of(one, why);
  }
  return "";
}

}  // namespace

std::string FindQueued(pid_t root) {
  const std::string why = Queues(root, FindDescriptors(ProcessTree(root)).all).Find();
  return why.empty() ? "" : why + ", which would be lost";
}

}  // namespace siding
