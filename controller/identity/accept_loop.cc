#include "controller/identity/accept_loop.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/logging.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kUntilDescriptorsAreFreeMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Start(std::string name, UniqueFd socket,
                                                              std::function<void(UniqueFd)> accepted) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoError(errno, "eventfd");
  return std::unique_ptr<AcceptLoop>(
      new AcceptLoop(std::move(name), std::move(socket), std::move(wake), std::move(accepted)));
}

AcceptLoop::AcceptLoop(std::string name, UniqueFd socket, UniqueFd wake,
                       std::function<void(UniqueFd)> accepted)
    : name_(std::move(name)),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      accepted_(std::move(accepted)) {
  thread_ = std::thread([this] { Run(); });
}

AcceptLoop::~AcceptLoop() { Stop(); }

void AcceptLoop::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void AcceptLoop::Run() {
  bool room = true;
  for (;;) {
    // Without room the socket would be ready all the time.
    pollfd fds[] = {{wake_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    if (poll(fds, room ? 2 : 1, room ? -1 : kUntilDescriptorsAreFreeMs) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    if (!room || fds[1].revents != 0) room = Accept();
  }
}

bool AcceptLoop::Accept() {
  UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection.valid()) {
    accepted_(std::move(connection));
    return true;
  }
  if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    spdlog::warn("{}: accept: {}", name_, std::strerror(errno));
    return false;
  }
  return true;  // it went away before it was accepted
}

}  // namespace siding
