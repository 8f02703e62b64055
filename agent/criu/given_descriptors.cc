#include "agent/criu/given_descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/status.h"

namespace siding {

absl::StatusOr<GivenDescriptors> GivenDescriptors::Open() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoError(errno, "socketpair");
  return GivenDescriptors(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

void GivenDescriptors::Take(const std::function<void(pid_t, UniqueFd)>& give) const {
  for (;;) {
    pid_t pid = 0;
    iovec data{&pid, sizeof pid};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(ours_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) return;
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    if (head == nullptr || head->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    UniqueFd given(fd);
    if (n == sizeof pid && give) give(pid, std::move(given));
  }
}

}  // namespace siding
