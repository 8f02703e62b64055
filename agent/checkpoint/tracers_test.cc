#include "agent/checkpoint/tracers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr char kCriu[] = "criu: dump --rpc -t 17";
constexpr char kDebugger[] = "strace -p 17";

// What this process says of itself, as setproctitle() does it.
void TakeTitle(const std::string& title) {
  std::istringstream words(ReadFile("/proc/self/stat").value_or(""));
  std::string word;
  uintptr_t begin = 0, end = 0;
  for (int field = 1; words >> word; ++field) {
    if (field == 48) begin = std::strtoull(word.c_str(), nullptr, 10);
    if (field == 49) end = std::strtoull(word.c_str(), nullptr, 10);
  }
  if (end - begin <= title.size()) _exit(3);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memset(reinterpret_cast<char*>(begin), 0, end - begin);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memcpy(reinterpret_cast<char*>(begin), title.data(), title.size());
}

// A task of one process, and one that traces it.
class TracersTest : public ::testing::Test {
 protected:
  TracersTest() {
    char name[] = "/tmp/siding-tracers-XXXXXX";
    folder_ = mkdtemp(name);
    task_ = Start([] { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); });
  }
  ~TracersTest() override {
    for (pid_t pid : {tracer_, task_}) {
      if (pid <= 0) continue;
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  // Returns when it has done that, and waits.
  static pid_t Start(const std::function<void()>& what) {
    int done[2];
    if (pipe(done) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
      what();
      close(done[1]);
      for (;;) pause();
    }
    close(done[1]);
    char none;
    EXPECT_EQ(read(done[0], &none, 1), 0);
    close(done[0]);
    return pid;
  }
  void Trace(const std::string& title, const std::string& folder) {
    tracer_ = Start([&] {
      if (chdir(folder.c_str()) != 0 || ptrace(PTRACE_SEIZE, task_, nullptr, nullptr) != 0) _exit(3);
      TakeTitle(title);
    });
    ASSERT_EQ(FindTraced(task_).size(), 1u);
  }
  bool TracerLives() const { return waitpid(tracer_, nullptr, WNOHANG) == 0; }

  std::string folder_;
  pid_t task_ = 0, tracer_ = 0;
};

TEST_F(TracersTest, CriuOfTheTaskIsFoundWhereItWorks) {
  Trace(kCriu, folder_);
  EXPECT_EQ(FindCriuAtWork(task_, folder_), tracer_);
}

TEST_F(TracersTest, CriuThatWorksElsewhereIsAnothers) {
  Trace(kCriu, "/tmp");
  EXPECT_EQ(FindCriuAtWork(task_, folder_), 0);
}

TEST_F(TracersTest, DebuggerIsNoCriuWhereverItWorks) {
  Trace(kDebugger, folder_);
  EXPECT_EQ(FindCriuAtWork(task_, folder_), 0);
}

TEST_F(TracersTest, CriuIsEndedWhenTimeRunsOut) {
  Trace(kCriu, folder_);
  std::thread reaper([this] {
    int status = 0;
    EXPECT_TRUE(AwaitChild(tracer_, status)) << "criu's end";
  });
  EXPECT_TRUE(AwaitCriuGone(task_, folder_, Duration(0)).ok());
  reaper.join();
  tracer_ = 0;
}

TEST_F(TracersTest, DebuggerIsNotWaitedForNorEnded) {
  Trace(kDebugger, folder_);
  EXPECT_TRUE(AwaitCriuGone(task_, folder_, Duration(0)).ok());
  EXPECT_TRUE(TracerLives());
}

TEST_F(TracersTest, DebuggerStandsInTheWayAndIsNamed) {
  Trace(kDebugger, "/tmp");
  EXPECT_THAT(WhyTraced(task_), HasSubstr(absl::StrCat("process ", task_, " (", ProgramOf(task_))));
  EXPECT_THAT(WhyTraced(task_), HasSubstr(absl::StrCat(" is being traced by process ", tracer_, " (")));
}

TEST_F(TracersTest, CriuAtWorkLetsGo) {
  Trace(kCriu, folder_);
  EXPECT_EQ(WhyTraced(task_), "");
}

TEST_F(TracersTest, NobodyTraces) { EXPECT_EQ(WhyTraced(task_), ""); }

}  // namespace
}  // namespace siding
