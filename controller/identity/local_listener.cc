#include "controller/identity/local_listener.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding {
namespace {

// Below this are the descriptors that the process opens for itself.
constexpr int kFirstNumber = 512;

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path ", path, " is longer than ", sizeof address.sun_path - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool SomebodyAnswers(const sockaddr_un& address) {
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void RaiseDescriptorLimit(const ServiceLimits& limits) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < rlim_t{kFirstNumber} + limits.connections) {
    spdlog::warn("this process may have {} open files, too few for limits.connections ({})", limit.rlim_max,
                 limits.connections);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Listen(const std::string& path,
                                                                     const ServiceLimits& limits,
                                                                     LocalIdentities& peers,
                                                                     std::function<void(int)> accepted) {
  SIDING_ASSIGN_OR_RETURN(sockaddr_un address, AddressOf(path));
  if (SomebodyAnswers(address)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is in use: another sidingd answers there"));
  }
  // Only a socket without a listener is replaced: the path may be mistyped, and another file.
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " is there and is no socket; expected a path for one"));
    }
    unlink(path.c_str());
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return ErrnoError(errno, "socket");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ErrnoError(errno, absl::StrCat("bind ", path));
  }
  // All users may connect; their rights follow from the uid.
  if (chmod(path.c_str(), 0666) != 0) return ErrnoError(errno, absl::StrCat("chmod ", path));
  if (listen(fd.get(), 1024) != 0) return ErrnoError(errno, absl::StrCat("listen ", path));
  RaiseDescriptorLimit(limits);
  std::unique_ptr<LocalListener> listener(new LocalListener(path, peers, std::move(accepted)));
  SIDING_ASSIGN_OR_RETURN(listener->loop_,
                          AcceptLoop::Start(path, std::move(fd), [raw = listener.get()](UniqueFd connection) {
                            raw->Accept(std::move(connection));
                          }));
  return listener;
}

LocalListener::LocalListener(std::string path, LocalIdentities& peers, std::function<void(int)> accepted)
    : path_(std::move(path)), peers_(peers), accepted_(std::move(accepted)), next_number_(kFirstNumber) {}

LocalListener::~LocalListener() { Stop(); }

void LocalListener::Stop() {
  if (loop_ == nullptr) return;
  loop_ = nullptr;
  unlink(path_.c_str());
}

int LocalListener::MoveToFreshNumber(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, next_number_);
  if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstNumber);  // round again
  if (moved >= 0) next_number_ = moved + 1;
  close(fd);
  return moved;
}

void LocalListener::Accept(UniqueFd connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  if (absl::Status room = peers_.MayAdd(peer.uid); !room.ok()) {
    spdlog::warn("{}: {}", path_, std::string(room.message()));
    return;
  }
  const int fd = MoveToFreshNumber(connection.Release());
  if (fd < 0) {
    spdlog::warn("{}: too many connections", path_);
    return;
  }
  peers_.Add(fd, {peer.uid, peer.gid});
  accepted_(fd);
}

}  // namespace siding
