#include "controller/api/local_identity.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
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

// 0: not open.
uint64_t InodeOf(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

bool SomebodyAnswers(const sockaddr_un& address) {
  UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

std::string UserName(uint32_t uid) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return absl::StrCat("uid:", uid);
}

absl::StatusOr<std::unique_ptr<LocalListener>> LocalListener::Listen(const std::string& path,
                                                                     const ServiceLimits& limits,
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
  return std::unique_ptr<LocalListener>(
      new LocalListener(path, limits, std::move(fd), std::move(wake), std::move(accepted)));
}

LocalListener::LocalListener(std::string path, const ServiceLimits& limits, UniqueFd socket, UniqueFd wake,
                             std::function<void(int)> accepted)
    : path_(std::move(path)),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      accepted_(std::move(accepted)),
      next_number_(kFirstNumber),
      connections_(limits, InodeOf) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max < rlim_t{kFirstNumber} + limits.connections) {
      spdlog::warn("this process may have {} open files, too few for limits.connections ({})", limit.rlim_max,
                   limits.connections);
    }
  }
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
  {
    std::lock_guard lock(mutex_);
    if (absl::Status room = connections_.MayAdd(peer.uid); !room.ok()) {
      spdlog::warn("{}: {}", path_, std::string(room.message()));
      close(accepted);
      return;
    }
  }
  const int fd = MoveToFreshNumber(accepted);
  if (fd < 0) {
    spdlog::warn("{}: too many connections", path_);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    connections_.Add(fd, {peer.uid, peer.gid});
  }
  accepted_(fd);
}

absl::StatusOr<PeerIdentity> LocalListener::Of(const std::string& peer) const {
  absl::string_view text = peer;
  int number = -1;
  if (!absl::ConsumePrefix(&text, "fd:") || !absl::SimpleAtoi(text, &number)) {
    return absl::UnauthenticatedError(absl::StrCat("peer ", peer, " did not come through the local socket"));
  }
  std::optional<ConnectionOwner> owner;
  {
    std::lock_guard lock(mutex_);
    owner = connections_.Find(number);
  }
  if (!owner) return absl::UnauthenticatedError(absl::StrCat("peer ", peer, " is not known"));
  return PeerIdentity{owner->uid, owner->gid, UserName(owner->uid)};
}

}  // namespace siding
