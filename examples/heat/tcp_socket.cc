#include "examples/heat/tcp_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace heat {
namespace {

sockaddr_in Native(const Endpoint& endpoint) {
  sockaddr_in native = {};
  native.sin_family = AF_INET;
  native.sin_port = htons(static_cast<uint16_t>(endpoint.port));
  inet_pton(AF_INET, endpoint.address.c_str(), &native.sin_addr);
  return native;
}

}  // namespace

std::string Text(const Endpoint& endpoint) { return endpoint.address + ":" + std::to_string(endpoint.port); }

bool IsAddress(const std::string& text) {
  in_addr ignored = {};
  return inet_pton(AF_INET, text.c_str(), &ignored) == 1;
}

TcpSocket::~TcpSocket() {
  if (fd_ >= 0) close(fd_);
}

int TcpSocket::Open() {
  if (fd_ >= 0) close(fd_);
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return fd_ >= 0 ? 0 : errno;
}

// The last part of a message does not wait until the other end has acknowledged the parts before it, which it
// may put off for 40 ms.
int TcpSocket::SendAtOnce() {
  const int on = 1;
  return setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 ? 0 : errno;
}

int TcpSocket::Listen(const Endpoint& at, int backlog) {
  if (const int error = Open(); error != 0) return error;
  const int on = 1;  // connections of an earlier run that are over may still have this port
  if (setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return errno;
  const sockaddr_in native = Native(at);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&native), sizeof native) != 0) return errno;
  return listen(fd_, backlog) == 0 ? 0 : errno;
}

int TcpSocket::Accept(TcpSocket* accepted) {
  TcpSocket fresh;
  do {
    fresh.fd_ = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  } while (fresh.fd_ < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (fresh.fd_ < 0) return errno;
  if (const int error = fresh.SendAtOnce(); error != 0) return error;
  *accepted = std::move(fresh);
  return 0;
}

int TcpSocket::Connect(const Endpoint& to) {
  if (const int error = Open(); error != 0) return error;
  const sockaddr_in native = Native(to);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&native), sizeof native) != 0) {
    if (errno != EINTR) return errno;
    if (const int error = AwaitConnection(); error != 0) return error;
  }
  return SendAtOnce();
}

// A connect() that was interrupted goes on in the kernel, and another call of it is an error.
int TcpSocket::AwaitConnection() {
  pollfd wait = {.fd = fd_, .events = POLLOUT, .revents = 0};
  while (poll(&wait, 1, -1) < 0) {
    if (errno != EINTR) return errno;
  }
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

int TcpSocket::Send(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = send(fd_, next, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno;
    next += sent;
    size -= static_cast<size_t>(sent);
  }
  return 0;
}

int TcpSocket::Receive(void* data, size_t size) {
  char* next = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(fd_, next, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return ECONNRESET;
    next += got;
    size -= static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace heat
