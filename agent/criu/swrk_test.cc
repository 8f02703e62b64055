#include "agent/criu/swrk.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

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
  absl::StatusOr<criu::Response> CallTo(const std::string& script) {
    const std::string program = folder_ + "/criu";
    EXPECT_TRUE(WriteFileAtomically(program, "#!/bin/sh\nfolder=" + folder_ + "\n" + script, 0755).ok());
    auto swrk = Swrk::Start(program, {}, {});
    if (!swrk.ok()) return swrk.status();
    criu::Request request;
    request.set_type(criu::VERSION);
    return swrk->Call(request);
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

}  // namespace
}  // namespace siding
