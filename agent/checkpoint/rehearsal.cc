#include "agent/checkpoint/rehearsal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/checkpoint/descriptors.h"
#include "agent/os/held.h"
#include "agent/os/processes.h"

namespace siding {
namespace {

// CRIU's own, and what others need meanwhile.
constexpr Bytes kRoom{256 << 20};

// CRIU removes the name of a socket and binds it again. Names without a file are the network's.
bool HasNameInFiles(const OpenDescriptor& descriptor) {
  const UniqueFd socket = Borrow(descriptor);
  sockaddr_un address = {};
  socklen_t size = sizeof address;
  if (!socket.valid() || getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return true;  // not known
  return address.sun_family == AF_UNIX && size > offsetof(sockaddr_un, sun_path) &&
         address.sun_path[0] != '\0';
}

bool IsNamedPipe(const OpenDescriptor& descriptor) {
  struct stat info = {};
  return stat(descriptor.link().c_str(), &info) == 0 && S_ISFIFO(info.st_mode);
}

// Empty: nothing.
std::string WhatStandsInTheWay(const OpenDescriptor& descriptor) {
  // All on the node share the numbers of pseudo-terminals.
  if (descriptor.target == "/dev/ptmx" || absl::StartsWith(descriptor.target, "/dev/pts/"))
    return "a pseudo-terminal";
  if (descriptor.socket != 0) return HasNameInFiles(descriptor) ? "a Unix socket with a name" : "";
  // The contents of a pipe with a name would be written into it again.
  if (absl::StartsWith(descriptor.target, "/") && IsNamedPipe(descriptor)) return "a pipe with a name";
  return absl::StrContains(descriptor.fdinfo(), "\nlock:") ? "a file lock, which can be held once only" : "";
}

std::string Has(pid_t pid, const std::string& what) { return absl::StrCat(NameOf(pid), " has ", what); }

}  // namespace

std::string WhyNotRehearsed(pid_t init, Bytes memory) {
  if (const Bytes available = AvailableMemory(); available.value < memory.value + kRoom.value)
    return absl::StrCat("its ", FormatBytes(memory),
                        " of memory would be needed a second time, and there are ", FormatBytes(available));
  const OpenDescriptors open = FindDescriptors(ProcessTree(init));
  if (open.hidden != 0) return Has(open.hidden, "what may not be looked at");
  for (const OpenDescriptor& descriptor : open.all) {
    if (const std::string what = WhatStandsInTheWay(descriptor); !what.empty())
      return Has(descriptor.pid, what);
  }
  // CRIU makes its name again for a moment; shared memory without a file has none.
  std::string why;
  ForEachHeld(init, [&](const Held& held) {
    const std::string target = TargetOf(held.link);
    if (why.empty() && absl::StartsWith(target, "/") && absl::EndsWith(target, " (deleted)") &&
        !absl::StartsWith(target, "/memfd:") && !absl::StartsWith(target, "/dev/zero ") &&
        target.rfind('/') != 0)
      why = Has(held.pid, "a file that was removed as its " + held.how);
  });
  return why;
}

}  // namespace siding
