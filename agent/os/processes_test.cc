#include "agent/os/processes.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;

TEST(ProcessStat, NameMayHoldParentheses) {
  const auto stat =
      ParseProcessStat("7 (a) b (c)) S 3 7 7 0 -1 4194304 1 0 0 0 11 22 0 0 20 0 1 0 12345 1 1");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 7);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 3);
  EXPECT_EQ(stat->cpu_ticks, 33u);
  EXPECT_EQ(stat->threads, 1);
  EXPECT_EQ(stat->start_time, 12345u);
}

TEST(ProcessStat, GarbageIsNone) {
  EXPECT_FALSE(ParseProcessStat(""));
  EXPECT_FALSE(ParseProcessStat("7 (x) S 3"));
}

TEST(Processes, WeAreAliveAndAnotherStartTimeIsSomebodyElse) {
  const auto stat = ReadProcessStat(getpid());
  ASSERT_TRUE(stat);
  EXPECT_TRUE(IsAlive(getpid(), stat->start_time));
  EXPECT_FALSE(IsAlive(getpid(), stat->start_time + 1));
}

TEST(Processes, TreeBeginsWithItsRootAndIsEmptyForNobody) {
  const auto tree = ProcessTree(getpid());
  ASSERT_FALSE(tree.empty());
  EXPECT_EQ(tree[0], getpid());
  EXPECT_TRUE(ProcessTree(1 << 30).empty());
}

// A process that waits to be killed, and is.
class Waiting {
 public:
  Waiting() : pid_(fork()) {
    if (pid_ > 0) return;
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  ~Waiting() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

TEST(Processes, TreeHasTheChildrenOfEachThread) {
  std::thread([] {
    const Waiting child;
    EXPECT_THAT(ProcessTree(getpid()), Contains(child.pid()));
  }).join();
}

TEST(Processes, TreeIsWithoutThoseThatHaveEnded) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_THAT(ProcessTree(getpid()), Not(Contains(child)));
  waitpid(child, nullptr, 0);
}

TEST(Processes, TreeHasWhoLivesWhileOthersComeAndGo) {
  const Waiting first;
  std::atomic<bool> enough = false;
  std::thread restless([&] {
    while (!enough) {
      const pid_t child = fork();
      if (child == 0) _exit(0);
      waitpid(child, nullptr, 0);
    }
  });
  const Waiting last;
  for (int i = 0; i < 50; ++i)
    EXPECT_THAT(ProcessTree(getpid()), AllOf(Contains(first.pid()), Contains(last.pid())));
  enough = true;
  restless.join();
}

TEST(HearsSignal, WhoHandlesOrBlocksItDoes) {
  EXPECT_FALSE(HearsSignal(getpid(), SIGUSR2));  // it would end us
  signal(SIGUSR2, [](int) {});
  EXPECT_TRUE(HearsSignal(getpid(), SIGUSR2));
  signal(SIGUSR2, SIG_IGN);
  EXPECT_FALSE(HearsSignal(getpid(), SIGUSR2));
  signal(SIGUSR2, SIG_DFL);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  EXPECT_TRUE(HearsSignal(getpid(), SIGUSR2));  // by sigwait() or a signalfd
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
}

TEST(HearsSignal, NobodyDoesNot) { EXPECT_FALSE(HearsSignal(0, SIGUSR2)); }

TEST(IsStoppedBySignal, OneThatWaitsForACommandToContinueIs) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    pause();
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status, WUNTRACED)) << "the child to stop";
  EXPECT_TRUE(IsStoppedBySignal(child));
  kill(child, SIGCONT);
  ASSERT_TRUE(AwaitChild(child, status, WCONTINUED)) << "the child to continue";
  EXPECT_FALSE(IsStoppedBySignal(child));
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_FALSE(IsStoppedBySignal(child));
}

// In a mount namespace of its own any process has files of any name.
TEST(Processes, AFileThatIsOnlyNamedAlikeIsAnother) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount";
  char folder[] = "/tmp/siding-alike-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/lock";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    const bool made =
        unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("none", folder, "tmpfs", 0, nullptr) == 0 && open(path.c_str(), O_RDWR | O_CREAT, 0600) >= 0;
    (void)!write(ready[1], made ? "1" : "0", 1);
    for (;;) pause();
  }
  close(ready[1]);
  char made = '0';
  ASSERT_EQ(read(ready[0], &made, 1), 1);
  EXPECT_EQ(made, '1');
  const UniqueFd ours(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(OldestWithOpen(ours.get()));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  unlink(path.c_str());
  rmdir(folder);
}

TEST(Processes, ThreadsAreCounted) {
  EXPECT_GE(ThreadsOf(getpid()), 1);
  EXPECT_EQ(ThreadsOf(1 << 30), 0);
}

TEST(Processes, MemoryIsMeasured) {
  std::atomic<pid_t> at{0};
  EXPECT_GT(TreeMemory(getpid(), at).value, 100000);
  EXPECT_EQ(at, 0);
  EXPECT_GT(TreeResident(getpid()).value, 100000);
}

}  // namespace
}  // namespace siding
