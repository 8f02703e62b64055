#include "agent/shim/shim_rehearse.h"

#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "agent/checkpoint/stdio.h"
#include "agent/criu/criu.h"
#include "agent/network/gang_network.h"
#include "agent/network/links.h"
#include "agent/network/netlink.h"
#include "agent/os/account.h"
#include "agent/task/json_file.h"
#include "agent/task/shim.pb.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int kLoopback = 1;  // its number in every network namespace

// What cannot be written stays as it is.
void Write(const char* path, const char* text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (fd.valid() && write(fd.get(), text, strlen(text)) < 0) return;
}

// All addresses are this network's own: sockets are bound to them and connected as they were.
absl::Status AddLocalRoute(unsigned char family) {
  rtmsg route = {};
  route.rtm_family = family;
  route.rtm_table = RT_TABLE_LOCAL;
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  return TellKernel(NETLINK_ROUTE,
                    NetlinkMessage(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, BytesOf(route),
                                   NumberAttribute(RTA_OIF, kLoopback)),
                    "make a route");
}

absl::Status MakeNetwork() {
  SIDING_RETURN_IF_ERROR(SetUp("lo"));
  SIDING_RETURN_IF_ERROR(AddLocalRoute(AF_INET));
  // Where the kernel has no IPv6, no socket has it. There a route does not make an address one's own.
  AddLocalRoute(AF_INET6).IgnoreError();
  Write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1");
  return absl::OkStatus();
}

// In the place of those that the task's output goes through.
class Pipes {
 public:
  absl::Status Make(const std::string& recorded, CriuRestore& restore) {
    SIDING_ASSIGN_OR_RETURN(const StdioPipes names, PipesFromText(recorded));
    for (size_t fd = 0; fd < names.size(); ++fd) {
      if (names[fd].empty()) continue;
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
      ends_.emplace_back(ends[0]);
      ends_.emplace_back(ends[1]);
      restore.inherited.push_back({names[fd], fd == 0 ? ends[0] : ends[1]});
    }
    return absl::OkStatus();
  }

 private:
  std::vector<UniqueFd> ends_;
};

absl::Status RestoreAndEnd(const std::string& folder) {
  // As `ps` in here sees them, and CRIU.
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return ErrnoError(errno, "mount /proc");
  SIDING_RETURN_IF_ERROR(MakeNetwork());
  SIDING_ASSIGN_OR_RETURN(const auto request, ReadJsonFile<agent::ShimRequest>(folder + "/request.json"));
  CriuRestore restore;
  restore.image_folder = request.restore().image_folder();
  restore.work_folder = folder;
  restore.temporary = request.restore().temporary();
  restore.files_as = AccountOf(request.spec().uid(), request.spec().gid());
  bool all_is_restored = false;
  restore.may_resume = [&](pid_t) {
    all_is_restored = true;
    return absl::CancelledError("it is only a rehearsal");
  };
  // Held, and criu not in it: connections of it to itself come to be one after the other.
  UniqueFd network;
  if (request.spec().keep_connections()) {
    SIDING_ASSIGN_OR_RETURN(network, MakeGangNetwork({.rank = request.rank(), .address = "127.0.0.1"}));
    restore.inherited.push_back({kOwnNetwork, network.get()});
  }
  Pipes pipes;
  SIDING_RETURN_IF_ERROR(pipes.Make(request.restore().pipes(), restore));
  SIDING_RETURN_IF_ERROR(FaultAt<"shim.rehearse: a restore is about to be rehearsed">());
  const auto init = NewCriu(request.restore().criu_path())->Restore(restore);
  if (all_is_restored) return absl::OkStatus();
  return init.ok() ? absl::InternalError("criu did not ask before it let the processes run") : init.status();
}

// The first process of its own process numbers: all others end with it.
int RehearseInHere(const std::string& folder) {
  const absl::Status status = RestoreAndEnd(folder);
  if (status.ok()) return 0;
  agent::ShimFailed failed;
  failed.set_message(std::string(status.message()));
  // The processes of the image are beside it and have all of their files, as its user.
  failed.set_image_refused(IsRefusal(status) || LacksAFile(status));
  if (const absl::Status written = WriteJsonFile(folder + "/failed.json", failed); !written.ok())
    fprintf(stderr, "siding-shim: %s\n", std::string(written.message()).c_str());
  return 1;
}

volatile pid_t first = 0;

void EndFirst(int) {
  if (first > 0) kill(first, SIGKILL);
}

}  // namespace

int Rehearse(const std::string& folder) {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;            // it has ended before it could be noticed
  Write("/proc/self/oom_score_adj", "1000\n");  // rather this than anybody's job
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET) != 0) {
    perror("siding-shim: namespaces for a rehearsal");
    return 1;
  }
  // Until the signal can be answered it waits.
  sigset_t end, before;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  sigprocmask(SIG_BLOCK, &end, &before);
  first = fork();
  if (first == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    _exit(RehearseInHere(folder));
  }
  signal(SIGTERM, EndFirst);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  // It has ended when all that it has made has.
  while (first > 0 && waitpid(first, &status, 0) < 0 && errno == EINTR) {
  }
  return first > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace siding
