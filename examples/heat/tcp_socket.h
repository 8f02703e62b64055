// TCP over IPv4 by calls that block. A call that a stop or a signal has interrupted goes on.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace heat {

struct Endpoint {
  std::string address;
  int port = 0;
};

std::string Text(const Endpoint& endpoint);  // "10.83.0.1:7100"
bool IsAddress(const std::string& text);     // such as "10.83.0.1"

// Functions that return an int return 0 or what errno was.
class TcpSocket {
 public:
  TcpSocket() = default;
  TcpSocket(TcpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TcpSocket& operator=(TcpSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TcpSocket();

  int Listen(const Endpoint& at, int backlog);
  int Accept(TcpSocket* accepted);
  int Connect(const Endpoint& to);

  int Send(const void* data, size_t size);
  // All of it; ECONNRESET if the other end has hung up before.
  int Receive(void* data, size_t size);

 private:
  int Open();
  int SendAtOnce();
  int AwaitConnection();

  int fd_ = -1;
};

}  // namespace heat
