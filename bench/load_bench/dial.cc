#include "bench/load_bench/dial.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

absl::StatusOr<UniqueFd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return ErrnoError(errno, "connect to " + path);
  if (fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoError(errno, "fcntl");
  return fd;
}

}  // namespace

// The peer of a socket is who connected it. The C library would change the user of all threads, the kernel
// changes that of one, which is for nothing else.
absl::StatusOr<std::shared_ptr<grpc::Channel>> DialAs(uint32_t uid, const std::string& socket) {
  absl::StatusOr<UniqueFd> fd = absl::UnknownError("not dialled");
  std::thread([&] {
    if (uid != geteuid() && syscall(SYS_setresuid, -1, uid, -1) != 0) {
      fd = ErrnoError(errno, "becoming another user");
    } else {
      fd = Connect(socket);
    }
  }).join();
  if (!fd.ok()) return fd.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomInsecureChannelFromFd("siding", fd->Release(), arguments);
}

}  // namespace siding
