// The unix socket at which siding-runc says that it makes a container. Only root is listened to.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "agent/pods/container_starts.h"
#include "common/files.h"

namespace siding {

// Serves until it is destroyed, each connection on a thread of its own: a container that is restored takes
// its time. The starts must outlive it.
class PodListener {
 public:
  // A socket that is there is replaced; its folder is made. The error names it.
  static absl::StatusOr<std::unique_ptr<PodListener>> Start(const std::string& path, ContainerStarts& starts);
  ~PodListener();
  PodListener(const PodListener&) = delete;
  PodListener& operator=(const PodListener&) = delete;

 private:
  struct Connection {
    UniqueFd fd;
    std::atomic<bool> over{false};
    std::thread thread;
  };
  PodListener(std::string path, ContainerStarts& starts, UniqueFd socket, UniqueFd wake);
  void Run();
  void Serve(int connection);
  // True: it may be asked for once more.
  bool ServeStart(int connection);

  const std::string path_;
  ContainerStarts& starts_;
  const UniqueFd socket_;
  const UniqueFd wake_;  // an eventfd: ends the thread
  std::atomic<bool> stopping_{false};
  std::list<Connection> connections_;  // of thread_
  std::thread thread_;
};

}  // namespace siding
