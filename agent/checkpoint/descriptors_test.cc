#include "agent/checkpoint/descriptors.h"

#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "agent/checkpoint/precheck.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// Another user's process that does not want to be looked into; `kept`: a group that it keeps, as a program
// with setgid.
class Undumpable {
 public:
  explicit Undumpable(gid_t kept = kNobody) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (setresgid(kNobody, kNobody, kept) != 0 || setresuid(kNobody, kNobody, kNobody) != 0 ||
          prctl(PR_SET_DUMPABLE, 0) != 0)
        _exit(1);
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

// What a thread does that has all rights but this one, as in containers.
void Without(int capability, const std::function<void()>& what) {
  std::thread([&] {
    __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct has[2] = {};
    if (syscall(SYS_capget, &header, has) != 0) return;
    has[capability / 32].effective &= ~(1U << capability % 32);
    if (syscall(SYS_capset, &header, has) == 0) what();
  }).join();
}

std::string WhyWithout(int capability, pid_t pid) {
  std::string why;
  Without(capability, [&] { why = WhyNotDumpable(pid, DumpingCriu()); });
  return why;
}

// Whether the kernel lets that user, with all rights but CAP_SYS_RESOURCE, read the process's limits, as CRIU
// does.
bool LimitsMayBeRead(pid_t pid, uid_t as) {
  bool may = false;
  Without(CAP_SYS_RESOURCE, [&] {
    const bool is =
        as == 0 || (syscall(SYS_prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
                    syscall(SYS_setresgid, as, as, as) == 0 && syscall(SYS_setresuid, as, as, as) == 0);
    rlimit limit = {};
    may = is && prlimit(pid, RLIMIT_CPU, nullptr, &limit) == 0;
  });
  return may;
}

TEST(Descriptors, AProcessThatMayNotBeLookedIntoIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process;
  EXPECT_THAT(WhyWithout(CAP_SYS_PTRACE, process.pid()), HasSubstr("may not be looked into"));
}

// As ssh-agent, which has setgid.
TEST(Descriptors, AProcessThatKeepsAGroupIsNamedWhereItsLimitsMayNotBeRead) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process(101);
  EXPECT_FALSE(LimitsMayBeRead(process.pid(), kNobody));
  const DumpingCriu as_user{CriuKind::kOurs, DumpingCriu::Ids{kNobody, kNobody}};
  EXPECT_THAT(WhyNotDumpable(process.pid(), as_user),
              HasSubstr(") has the group 101, as programs with setgid"));
  EXPECT_EQ(WhyNotDumpable(process.pid(), {CriuKind::kOurs, std::nullopt}), "") << "with CAP_SYS_RESOURCE";
}

TEST(Descriptors, AnotherUsersLimitsMayNotBeReadByRootEither) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process;
  EXPECT_FALSE(LimitsMayBeRead(process.pid(), 0));
  EXPECT_THAT(WhyNotDumpable(process.pid(), {CriuKind::kOurs, DumpingCriu::Ids{}}),
              HasSubstr(") has the user 65534"));
}

TEST(Descriptors, OfTheSameUserAndGroupTheyMay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  const Undumpable process;
  EXPECT_TRUE(LimitsMayBeRead(process.pid(), kNobody));
  EXPECT_EQ(WhyNotDumpable(process.pid(), {CriuKind::kOurs, DumpingCriu::Ids{kNobody, kNobody}}), "");
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
