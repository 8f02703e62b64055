#include "agent/gpu/huge_pages.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/files.h"
#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class HugePagesTest : public testing::Test {
 protected:
  HugePagesTest() {
    char name[] = "/tmp/siding-pages.XXXXXX";
    folder_ = mkdtemp(name);
    Site("always [madvise] never");
  }
  ~HugePagesTest() override { std::filesystem::remove_all(folder_); }
  void Site(const std::string& text) const { std::ofstream(setting()) << text; }
  std::string setting() const { return folder_ + "/enabled"; }
  std::string holders() const { return folder_ + "/holders"; }
  // The file holds what was written last: the kernel would show it among the others.
  std::string Now() const { return *ReadFile(setting()); }

  std::string folder_;
};

TEST_F(HugePagesTest, AreOnWhileTheyAreHeld) {
  HugePages pages(setting(), holders());
  auto hold = pages.Take();
  ASSERT_NE(hold, nullptr);
  EXPECT_EQ(Now(), "always");
  hold.reset();
  EXPECT_EQ(Now(), "madvise");
}

TEST_F(HugePagesTest, TheLastToLetGoPutsTheSettingBack) {
  HugePages pages(setting(), holders());
  auto first = pages.Take(), second = pages.Take();
  first.reset();
  EXPECT_EQ(Now(), "always");
  second.reset();
  EXPECT_EQ(Now(), "madvise");
}

TEST_F(HugePagesTest, ASiteThatSaysNeverIsObeyed) {
  Site("always madvise [never]");
  HugePages pages(setting(), holders());
  EXPECT_EQ(pages.Take(), nullptr);
  EXPECT_EQ(Now(), "always madvise [never]");
}

TEST_F(HugePagesTest, AMachineWithoutTheSettingHasNone) {
  HugePages pages(folder_ + "/nothing", holders());
  EXPECT_EQ(pages.Take(), nullptr);
}

TEST_F(HugePagesTest, WhatAKilledProcessLeftIsPutBack) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    HugePages pages(setting(), holders());
    const auto hold = pages.Take();
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the process that has a hold";
  EXPECT_EQ(Now(), "always");
  const HugePages next(setting(), holders());
  EXPECT_EQ(Now(), "madvise");
}

TEST_F(HugePagesTest, AnotherProcessesHoldOutlivesOurs) {
  int told[2], ends[2];
  ASSERT_EQ(pipe(told), 0);
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  char byte = 0;
  if (child == 0) {
    close(ends[1]);
    HugePages pages(setting(), holders());
    auto hold = pages.Take();
    if (write(told[1], &byte, 1) != 1) _exit(1);
    if (read(ends[0], &byte, 1) != 0) _exit(1);
    hold.reset();
    _exit(0);
  }
  close(told[1]);
  ASSERT_EQ(read(told[0], &byte, 1), 1);
  Site("[always] madvise never");  // as the kernel shows it
  HugePages pages(setting(), holders());
  pages.Take().reset();
  EXPECT_EQ(Now(), "always");
  Site("[always] madvise never");
  close(ends[1]);
  close(ends[0]);
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the other process's end";
  EXPECT_EQ(Now(), "madvise");
}

}  // namespace
}  // namespace siding
