#include "agent/network/inside.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <thread>

#include "common/status.h"

namespace siding {
namespace {

absl::Status OnAThread(const std::function<absl::Status()>& act) {
  absl::Status status;
  std::thread([&] { status = act(); }).join();
  return status;
}

}  // namespace

absl::Status InNetwork(int netns_fd, const std::function<absl::Status()>& act) {
  return OnAThread([&] {
    if (setns(netns_fd, CLONE_NEWNET) != 0) return ErrnoError(errno, "enter a network namespace");
    return act();
  });
}

absl::StatusOr<UniqueFd> MakeNetwork(const std::function<absl::Status()>& act) {
  UniqueFd made;
  SIDING_RETURN_IF_ERROR(OnAThread([&]() -> absl::Status {
    if (unshare(CLONE_NEWNET) != 0) return ErrnoError(errno, "make a network namespace");
    SIDING_RETURN_IF_ERROR(act());
    SIDING_ASSIGN_OR_RETURN(made, OpenOwnNetwork());
    return absl::OkStatus();
  }));
  return made;
}

absl::StatusOr<UniqueFd> OpenOwnNetwork() {
  UniqueFd fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open /proc/thread-self/ns/net");
  return fd;
}

}  // namespace siding
