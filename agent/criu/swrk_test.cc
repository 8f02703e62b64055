#include "agent/criu/swrk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "common/files.h"
#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

bool WriteFileInPlace(const std::string& file, const std::string& text) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

class SwrkTest : public testing::Test {
 protected:
  SwrkTest() {
    char name[] = "/tmp/siding-swrk-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~SwrkTest() override {
    if (const auto pid = ReadFile(folder_ + "/pid"); pid.ok()) kill(std::atoi(pid->c_str()), SIGKILL);
    std::filesystem::remove_all(folder_);
  }
  // A program in CRIU's place; $folder is a place for its files.
  absl::StatusOr<criu::Response> CallTo(const std::string& script, bool abandon = false,
                                        Duration patience = Duration(0)) {
    const std::string program = folder_ + "/criu";
    EXPECT_TRUE(WriteFileAtomically(program, "#!/bin/sh\nfolder=" + folder_ + "\n" + script, 0755).ok());
    auto swrk = Swrk::Start(program, {}, {}, {}, {}, Swrk::For::kDump);
    if (!swrk.ok()) return swrk.status();
    criu::Request request;
    request.set_type(criu::VERSION);
    const std::atomic<bool> abandoned{abandon};
    return swrk->Call(request, {}, &abandoned, patience);
  }

  std::string folder_;
};

TEST_F(SwrkTest, OneThatDiesIsNoticed) {
  EXPECT_TRUE(absl::IsUnavailable(CallTo("head -c 1 <&3 > /dev/null\nkill -KILL $$\n").status()));
}

TEST_F(SwrkTest, OneThatDiesIsNoticedThoughAnotherHasItsSocket) {
  EXPECT_TRUE(absl::IsUnavailable(
      CallTo("head -c 1 <&3 > /dev/null\nsleep 1000 &\necho $! > $folder/pid\nkill -KILL $$\n").status()));
}

TEST_F(SwrkTest, ADumpIsTheLastThatIsEndedForWantOfMemoryWhereWeMaySaySo) {
  const std::string file = "/proc/self/oom_score_adj";
  const std::string ours = ReadFile(file).value_or("");
  const bool may = WriteFileInPlace(file, "-1000") && WriteFileInPlace(file, ours);
  CallTo("head -c 1 <&3 > /dev/null\ncat " + file + " > $folder/score\n").status().IgnoreError();
  EXPECT_EQ(ReadFile(folder_ + "/score").value_or(""), may ? "-1000\n" : ours);
}

TEST_F(SwrkTest, OneThatIsToStopFailsAtItsNextWriteAndMayUndo) {
  EXPECT_TRUE(absl::IsAborted(
      CallTo("while echo x > $folder/page 2> /dev/null; do :; done\nmkdir $folder/undone\n", true, kPatience)
          .status()));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/undone"));
}

TEST_F(SwrkTest, OneThatIsToStopFindsItsSocketClosed) {
  EXPECT_TRUE(absl::IsAborted(
      CallTo("head -c 1 <&3 > /dev/null\ncat <&3 > /dev/null\nmkdir $folder/undone\n", true, kPatience)
          .status()));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/undone"));
}

TEST_F(SwrkTest, OneThatDoesNotStopIsEnded) {
  EXPECT_TRUE(
      absl::IsAborted(CallTo("while :; do sleep 1000; done\n", true, std::chrono::milliseconds(1)).status()));
}

}  // namespace
}  // namespace siding
