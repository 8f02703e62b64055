#include "agent/shim/shim_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/os/folder_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

// A process that holds the lock, and has not written who it is.
class ShimTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder());
    int ready[2];
    ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
    const std::string path = folder() + "/shim.lock";
    shim_ = fork();
    if (shim_ == 0) {
      const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (flock(lock, LOCK_EX) != 0 || write(ready[1], "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ready[1]);  // else nothing ends if it has ended
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  void TearDown() override {
    kill(shim_, SIGKILL);
    waitpid(shim_, nullptr, 0);
  }
  std::string folder() const { return folder_ / "task"; }

  FolderForAll folder_;
  pid_t shim_ = 0;
};

TEST_F(ShimTest, OneThatHasNotWrittenWhoItIsIsFound) {
  const auto found = FindShim(folder());
  ASSERT_TRUE(found.ok()) << found.status();
  kill(shim_, SIGKILL);
  EXPECT_EQ(WaitForShim(*found, /*wake=*/-1), ShimWait::kEnded);
  EXPECT_TRUE(absl::IsNotFound(FindShim(folder()).status()));
}

TEST_F(ShimTest, IsEndedByForce) {
  EXPECT_TRUE(EndShim(folder()).ok());
  EXPECT_TRUE(absl::IsNotFound(FindShim(folder()).status()));
  EXPECT_TRUE(EndShim(folder()).ok()) << "there is none any more";
}

}  // namespace
}  // namespace siding
