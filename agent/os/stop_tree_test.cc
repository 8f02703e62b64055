#include "agent/os/stop_tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60), kShort = std::chrono::milliseconds(200);

// Memory that the test shares with the processes that it makes.
struct Shared {
  std::atomic<uint64_t> steps{0};
  std::atomic<int> ready{0};
};

class StopTreeTest : public ::testing::Test {
 protected:
  StopTreeTest()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                    Shared) {}
  ~StopTreeTest() override {
    for (const pid_t pid : ProcessTree(child_)) kill(pid, SIGKILL);
    waitpid(child_, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }

  // A process that does this, and has begun to when so many threads are `ready`.
  void Start(const std::function<void()>& act, int threads = 1) {
    child_ = fork();
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      act();
      _exit(0);
    }
    ASSERT_TRUE(PollUntil([&] { return shared_->ready >= threads; }, kPatience));
  }
  // Counts for ever.
  void Step() const {
    for (++shared_->ready;;) ++shared_->steps;
  }
  // With nothing to do meanwhile.
  absl::Status Stop(Duration patience = kPatience) const {
    return WhileStopped(child_, patience, [](const StoppedTree&) { return absl::OkStatus(); });
  }

  char State(pid_t pid, pid_t thread) const {
    const auto text = ReadFile(absl::StrCat("/proc/", pid, "/task/", thread, "/stat"));
    const auto stat = text.ok() ? ParseProcessStat(*text) : std::nullopt;
    return stat ? stat->state : 'X';
  }
  // That are neither stopped nor have ended, of how many.
  int Running(int* of = nullptr) const {
    int running = 0;
    for (const pid_t pid : ProcessTree(child_)) {
      for (const pid_t thread : ThreadIdsOf(pid)) {
        if (of != nullptr) ++*of;
        const char state = State(pid, thread);
        if (state != 't' && state != 'Z' && state != 'X') ++running;
      }
    }
    return running;
  }
  void ExpectItRuns() const {
    EXPECT_TRUE(FindTraced(child_).empty());
    const uint64_t before = shared_->steps;
    EXPECT_TRUE(PollUntil([&] { return shared_->steps > before; }, kPatience));
  }

  Shared* const shared_;
  pid_t child_ = -1;
};

TEST_F(StopTreeTest, AllThreadsOfAllProcessesAreStoppedMeanwhile) {
  Start(
      [&] {
        if (fork() == 0) Step();
        std::thread other([&] { Step(); });
        Step();
      },
      3);
  int threads = 0, running = -1;
  std::set<pid_t> known;
  EXPECT_EQ(WhileStopped(child_, kPatience,
                         [&](const StoppedTree& tree) {
                           running = Running(&threads);
                           known = tree.processes;
                           EXPECT_TRUE(tree.is_held());
                           return absl::OkStatus();
                         }),
            absl::OkStatus());
  EXPECT_EQ(running, 0);
  EXPECT_EQ(threads, 3);
  const std::vector<pid_t> tree = ProcessTree(child_);
  EXPECT_THAT(known, ::testing::UnorderedElementsAreArray(tree));
  ExpectItRuns();
}

TEST_F(StopTreeTest, AndThoseThatAreMadeMeanwhile) {
  Start([&] {
    for (++shared_->ready;;) {
      ++shared_->steps;
      std::thread([] {}).detach();
      if (fork() == 0) _exit(0);
      waitpid(-1, nullptr, WNOHANG);
    }
  });
  for (int i = 0; i < 30; ++i) {
    int running = -1;
    ASSERT_EQ(WhileStopped(child_, kPatience,
                           [&](const StoppedTree&) {
                             running = Running();
                             return absl::OkStatus();
                           }),
              absl::OkStatus());
    ASSERT_EQ(running, 0);
  }
  ExpectItRuns();
}

// Its first thread ends last, and tells of it only then.
TEST_F(StopTreeTest, OneWithSeveralThreadsMayEndMeanwhile) {
  Start([&] {
    for (++shared_->ready;; ++shared_->steps) {
      const pid_t child = fork();
      if (child == 0) {
        std::thread([] { _exit(0); }).detach();
        for (;;) pause();
      }
      waitpid(child, nullptr, 0);
    }
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Stop(), absl::OkStatus());
  ExpectItRuns();
}

// The kernel lets nobody stop the thread that calls execve() before the others have ended, nor these end
// while they are stopped: so it is not stopped.
TEST_F(StopTreeTest, AThreadMayBecomeAnotherProgramMeanwhile) {
  Start([&] {
    for (++shared_->ready;; ++shared_->steps) {
      const pid_t child = fork();
      if (child == 0) {
        std::thread([] { execl("/bin/true", "true", nullptr); }).detach();
        for (;;) pause();
      }
      waitpid(child, nullptr, 0);
    }
  });
  for (int i = 0; i < 30; ++i) {
    const absl::Status stopped = WhileStopped(child_, kShort, [&](const StoppedTree&) {
      EXPECT_EQ(Running(), 0);
      return absl::OkStatus();
    });
    ASSERT_TRUE(stopped.ok() || absl::IsDeadlineExceeded(stopped)) << stopped;
  }
  ExpectItRuns();
}

TEST_F(StopTreeTest, WhatIsDoneMeanwhileSaysWhatBecomesOfIt) {
  Start([&] { Step(); });
  EXPECT_EQ(
      WhileStopped(child_, kPatience, [](const StoppedTree&) { return absl::DataLossError("so it is"); })
          .message(),
      "so it is");
  ExpectItRuns();
}

TEST_F(StopTreeTest, NoSignalIsLost) {
  static std::atomic<uint64_t>* heard;
  heard = &shared_->steps;
  Start([&] {
    signal(SIGRTMIN, [](int) { ++*heard; });
    for (++shared_->ready;;) pause();
  });
  constexpr uint64_t kSignals = 3000, kAhead = 20;
  std::thread sender([&] {
    for (uint64_t sent = 0; sent < kSignals;)
      if (sent < *heard + kAhead && sigqueue(child_, SIGRTMIN, sigval{}) == 0) ++sent;
  });
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (*heard < kSignals && std::chrono::steady_clock::now() < until) EXPECT_EQ(Stop(), absl::OkStatus());
  EXPECT_EQ(*heard, kSignals);
  *heard = kSignals;  // so that the sender ends
  sender.join();
}

// Another thread cannot be stopped, so this one is let go of by the end of who was to stop them.
TEST_F(StopTreeTest, NorWhereOneDoesNotStop) {
  static std::atomic<uint64_t>* heard;
  heard = &shared_->steps;
  Start([&] {
    signal(SIGRTMIN, [](int) { ++*heard; });
    std::thread([&] {
      if (vfork() == 0)
        for (++shared_->ready;;) pause();
    }).detach();
    for (;;) pause();
  });
  uint64_t sent = 0;
  for (int i = 0; i < 30; ++i) {
    std::thread sender([&] {
      for (int k = 0; k < 500; ++k)
        if (sigqueue(child_, SIGRTMIN, sigval{}) == 0) ++sent;
    });
    EXPECT_TRUE(absl::IsDeadlineExceeded(Stop(std::chrono::milliseconds(10))));
    sender.join();
  }
  EXPECT_TRUE(PollUntil([&] { return shared_->steps == sent; }, kPatience))
      << shared_->steps << " of " << sent;
}

TEST_F(StopTreeTest, WhoIsStoppedBySignalStaysSo) {
  Start([&] { Step(); });
  kill(child_, SIGSTOP);
  ASSERT_TRUE(PollUntil([&] { return IsStoppedBySignal(child_); }, kPatience));
  EXPECT_EQ(Stop(), absl::OkStatus());
  EXPECT_TRUE(PollUntil([&] { return IsStoppedBySignal(child_); }, kPatience));
  kill(child_, SIGCONT);
  ExpectItRuns();
}

TEST_F(StopTreeTest, TheyRunOnIfWhoHasStoppedThemIsKilled) {
  Start([&] {
    std::thread other([&] { Step(); });
    Step();
  });
  const pid_t stopper = fork();
  if (stopper == 0) {
    (void)WhileStopped(child_, kPatience, [](const StoppedTree&) {
      kill(getpid(), SIGKILL);
      return absl::OkStatus();
    });
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(stopper, &status, 0), stopper);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(PollUntil([&] { return FindTraced(child_).empty(); }, kPatience));
  ExpectItRuns();
}

TEST_F(StopTreeTest, IfItsProcessIsKilledMeanwhileItIsSaid) {
  Start([&] { Step(); });
  EXPECT_TRUE(absl::IsAborted(WhileStopped(child_, kPatience, [&](const StoppedTree& tree) {
    const std::vector<Traced> traced = FindTraced(child_);
    EXPECT_EQ(traced.size(), 1u);
    EXPECT_TRUE(IsStopping(traced.at(0).tracer));
    kill(traced.at(0).tracer, SIGKILL);
    EXPECT_TRUE(PollUntil([&] { return !tree.is_held(); }, kPatience));
    return absl::OkStatus();
  })));
  ExpectItRuns();
}

// A parent that waits for the child of a vfork() cannot be stopped.
TEST_F(StopTreeTest, OneThatDoesNotStopIsLetGoOf) {
  Start([&] {
    const pid_t child = vfork();
    if (child == 0) Step();
  });
  bool called = false;
  EXPECT_TRUE(absl::IsDeadlineExceeded(WhileStopped(child_, kShort, [&](const StoppedTree&) {
    called = true;
    return absl::OkStatus();
  })));
  EXPECT_FALSE(called);
  EXPECT_EQ(State(child_, child_), 'D') << "so the kernel has it";
  ExpectItRuns();
}

TEST_F(StopTreeTest, OneThatIsTracedIsLeftAlone) {
  Start([&] { Step(); });
  ASSERT_EQ(ptrace(PTRACE_SEIZE, child_, nullptr, nullptr), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(Stop()));
  EXPECT_EQ(FindTraced(child_).at(0).tracer, getpid());
  EXPECT_FALSE(IsStopping(getpid()));
}

TEST_F(StopTreeTest, WhereAllHaveEndedThereIsNothingToStop) {
  Start([&] { ++shared_->ready; });
  ASSERT_TRUE(PollUntil(
      [&] {
        const auto stat = ReadProcessStat(child_);
        return !stat || stat->state == 'Z';
      },
      kPatience));
  EXPECT_TRUE(absl::IsFailedPrecondition(Stop()));
}

}  // namespace
}  // namespace siding
