// One `criu swrk`: a CRIU that serves a socket pair and ends with it. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/criu/criu.h"
#include "agent/criu/criu_rpc.pb.h"
#include "common/files.h"
#include "common/units.h"

namespace siding {

// Variables of its environment, by name; empty: not set.
using CriuSettings = std::map<std::string, std::string>;

class Swrk {
 public:
  // What it is started for. The death of a dump leaves sockets in repair mode, or a process in the middle of
  // code that is not its own: it is the last that the kernel ends for want of memory, where we may say so,
  // and writes over a limit (RLIMIT_FSIZE) fail without ending it.
  enum class For { kAnything, kDump };
  // CRIU's numbers of the descriptors that it is handed over begin here.
  static constexpr int kFirstHandedOver = 4;
  // Starts `path`, as the given user, in the given cgroups, with copies of some descriptors, and with
  // `settings` in its environment, beside ours.
  static absl::StatusOr<Swrk> Start(const std::string& path, const CriuUser& user,
                                    const std::vector<std::string>& cgroups,
                                    const std::vector<int>& handed_over = {},
                                    const CriuSettings& settings = {}, For what = For::kAnything);
  Swrk(Swrk&& other) noexcept : pid_(other.pid_), socket_(std::move(other.socket_)) { other.pid_ = 0; }
  Swrk& operator=(Swrk&&) = delete;
  // Closes the socket, which makes CRIU undo whatever is not finished, and waits for its end.
  ~Swrk();

  pid_t pid() const { return pid_; }
  // kUnavailable once it has ended.
  absl::Status Running() const;
  // Sends one request and returns the answer. Notifications in between are handed to `on_notify`, whose false
  // makes the operation fail. kUnavailable: CRIU died; kAborted: `abandon` became true and CRIU has ended. It
  // is asked to undo what it has begun, for as long as `patience`, and then ended by force.
  absl::StatusOr<criu::Response> Call(const criu::Request& request,
                                      const std::function<bool(const criu::Notification&)>& on_notify = {},
                                      const std::atomic<bool>* abandon = nullptr,
                                      Duration patience = Duration(0));

 private:
  Swrk(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}
  void Stop(Duration patience);

  pid_t pid_;
  UniqueFd socket_;
};

}  // namespace siding
