// The unix socket at which Slurm's plugin registers tasks with this node's agent.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "agent/node/task_host.h"
#include "common/files.h"

namespace siding {

// Serves one registration after the other on a thread of its own until it is destroyed. Only processes of
// this process's own user are listened to. One that has connected and says nothing holds nobody up: its task
// is its user's, who can stop it before it is anything. Of very many such the first are hung up on.
class SlurmListener {
 public:
  // A socket that is there is replaced; its folder is made. The host must outlive the listener. The error
  // names the socket.
  static absl::StatusOr<std::unique_ptr<SlurmListener>> Start(const std::string& path, TaskHost& host);
  ~SlurmListener();
  SlurmListener(const SlurmListener&) = delete;
  SlurmListener& operator=(const SlurmListener&) = delete;

 private:
  SlurmListener(std::string path, TaskHost& host, UniqueFd socket, UniqueFd wake);
  void Run();
  void Serve(UniqueFd connection);

  const std::string path_;
  TaskHost& host_;
  const UniqueFd socket_;
  const UniqueFd wake_;  // an eventfd: ends the thread
  std::thread thread_;
};

}  // namespace siding
