#include "controller/identity/local_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
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
  // Only a socket that nobody answers is replaced: the path may be mistyped, and somebody's file.
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
  // Everybody may connect; who may do what is decided by the uid.
  if (chmod(path.c_str(), 0666) != 0) return ErrnoError(errno, absl::StrCat("chmod ", path));
  if (listen(fd.get(), 1024) != 0) return ErrnoError(errno, absl::StrCat("listen ", path));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoError(errno, "eventfd");
  RaiseDescriptorLimit(limits);
  return std::unique_ptr<LocalListener>(
      new LocalListener(path, peers, std::move(fd), std::move(wake), std::move(accepted)));
}

LocalListener::LocalListener(std::string path, LocalIdentities& peers, UniqueFd socket, UniqueFd wake,
                             std::function<void(int)> accepted)
    : path_(std::move(path)),
      peers_(peers),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      accepted_(std::move(accepted)),
      next_number_(kFirstNumber) {
  thread_ = std::thread([this] { Run(); });
}

LocalListener::~LocalListener() { Stop(); }

void LocalListener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
  thread_.join();
  unlink(path_.c_str());
}

void LocalListener::Run() {
  for (;;) {
    pollfd fds[] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if (fds[0].revents != 0) Accept();
  }
}

int LocalListener::MoveToFreshNumber(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, next_number_);
  if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstNumber);  // round again
  if (moved >= 0) next_number_ = moved + 1;
  close(fd);
  return moved;
}

void LocalListener::Accept() {
  const int accepted = accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (accepted < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      spdlog::warn("{}: accept: {}", path_, std::strerror(errno));
    }
    return;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(accepted, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    close(accepted);
    return;
  }
  if (absl::Status room = peers_.MayAdd(peer.uid); !room.ok()) {
    spdlog::warn("{}: {}", path_, std::string(room.message()));
    close(accepted);
    return;
  }
  const int fd = MoveToFreshNumber(accepted);
  if (fd < 0) {
    spdlog::warn("{}: too many connections", path_);
    return;
  }
  peers_.Add(fd, {peer.uid, peer.gid});
  accepted_(fd);
}

}  // namespace siding
