#include "agent/pods/pod_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "common/packets.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// Less than a kubelet waits for its runtime, which is two minutes.
constexpr Duration kPatience = std::chrono::seconds(100);
constexpr size_t kMostConnections = 512;

bool IsRoot(int connection) {
  const auto user = UserOfPeer(connection);
  return user.ok() && *user == 0;
}

bool HasGone(int connection) {
  pollfd state{connection, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PodListener>> PodListener::Start(const std::string& path,
                                                                ContainerStarts& starts) {
  SIDING_ASSIGN_OR_RETURN(UniqueFd socket, ListenForPackets(path, 0600));
  UniqueFd wake(eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return ErrnoError(errno, "eventfd");
  return std::unique_ptr<PodListener>(new PodListener(path, starts, std::move(socket), std::move(wake)));
}

PodListener::PodListener(std::string path, ContainerStarts& starts, UniqueFd socket, UniqueFd wake)
    : path_(std::move(path)), starts_(starts), socket_(std::move(socket)), wake_(std::move(wake)) {
  thread_ = std::thread([this] { Run(); });
}

PodListener::~PodListener() {
  stopping_ = true;
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) spdlog::error("pods: cannot wake the listener");
  thread_.join();
  for (Connection& connection : connections_) {
    shutdown(connection.fd.get(), SHUT_RDWR);
    connection.thread.join();
  }
  unlink(path_.c_str());
}

void PodListener::Run() {
  while (!stopping_) {
    pollfd ready[2] = {{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 || ready[0].revents == 0) continue;
    for (auto it = connections_.begin(); it != connections_.end();) {
      if (it->over) it->thread.join();
      it = it->over ? connections_.erase(it) : std::next(it);
    }
    UniqueFd fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid() || !IsRoot(fd.get()) || connections_.size() >= kMostConnections) continue;
    Connection& connection = connections_.emplace_back();
    connection.fd = std::move(fd);
    connection.thread = std::thread([this, &connection] {
      Serve(connection.fd.get());
      shutdown(connection.fd.get(), SHUT_RDWR);  // it is closed when the next one comes
      connection.over = true;
    });
  }
}

void PodListener::Serve(int connection) {
  while (!stopping_ && ServeStart(connection)) {
  }
}

bool PodListener::ServeStart(int connection) {
  const auto text = ReceivePacket(connection, kMostPodsMessage);
  if (absl::IsUnavailable(text.status())) return false;  // it has gone
  const auto starting = text.ok() ? ParseStarting(*text) : text.status();
  if (!starting.ok()) {
    SendPacket(connection, ToText(absl::StatusOr<ContainerStart>(starting.status())));
    return false;
  }
  const bool patient = starting->patience == Duration(0);
  const auto start = starts_.Ask(*starting, patient ? kPatience : std::min(kPatience, starting->patience),
                                 [&] { return !stopping_ && !HasGone(connection); });
  // The next agent is asked again.
  if (stopping_) return false;
  if (!start.ok())
    spdlog::warn("pods: container {} of pod {}: {}", starting->name, starting->pod_uid,
                 std::string(start.status().message()));
  SendPacket(connection, ToText(start));
  if (!start.ok()) return false;
  const auto said = ReceivePacket(connection, kMostPodsMessage);
  absl::StatusOr<pid_t> made = absl::UnavailableError("siding-runc has ended without a word");
  if (said.ok()) made = ParseMade(*said);
  if (!stopping_) starts_.Tell(*starting, made);
  return said.ok() && !made.ok();
}

}  // namespace siding
