#include "agent/checkpoint/descriptors.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "agent/checkpoint/precheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// Another user's process that does not want to be looked into.
class Undumpable {
 public:
  Undumpable() {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (setresuid(65534, 65534, 65534) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0) _exit(1);
      close(ready[0]);
      (void)!write(ready[1], "", 1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Undumpable() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// What a thread finds that has all rights but this one, as in containers.
std::string WhyWithout(int capability, pid_t pid) {
  std::string why;
  std::thread([&] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct has[2] = {};
    if (syscall(SYS_capget, &header, has) != 0) return;
    has[capability / 32].effective &= ~(1U << capability % 32);
    if (syscall(SYS_capset, &header, has) == 0) why = WhyNotDumpable(pid, CriuKind::kAny);
  }).join();
  return why;
}

TEST(Descriptors, AProcessThatMayNotBeLookedIntoIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process;
  EXPECT_THAT(WhyWithout(CAP_SYS_PTRACE, process.pid()), HasSubstr("may not be looked into"));
}

TEST(Descriptors, RootMayLookIntoAll) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process;
  EXPECT_EQ(FindDescriptors({process.pid()}).hidden, 0);
}

TEST(Descriptors, AProcessThatIsGoneHasNone) {
  const OpenDescriptors found = FindDescriptors({1 << 30});
  EXPECT_TRUE(found.all.empty());
  EXPECT_EQ(found.hidden, 0);
}

}  // namespace
}  // namespace siding
