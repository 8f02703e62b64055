#include "agent/node/self_check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

class SelfCheckTest : public testing::Test {
 protected:
  SelfCheckTest() {
    char name[] = "/tmp/siding-self-check-XXXXXX";
    folder_ = mkdtemp(name);
    program_ = folder_ + "/shim";
    EXPECT_TRUE(WriteFileAtomically(program_, "", 0755).ok());
    needs_ = {folder_, folder_, {program_}, Freezer::WithSignals(), {}};
  }
  ~SelfCheckTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, program_;
  StartNeeds needs_{"", "", {}, Freezer::WithSignals(), {}};
};

// What a process of another user finds, in a child; as root only.
std::string NobodysWhyNoNamespaces() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
    const std::string why = LookForNamespaces()();
    _exit(write(ends[1], why.data(), why.size()) < 0);
  }
  close(ends[1]);
  std::string why(4096, '\0');
  const ssize_t size = read(ends[0], why.data(), why.size());
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  why.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return why;
}

TEST(Namespaces, NobodyButRootCanMakeThemForTasks) {
  EXPECT_EQ(NobodysWhyNoNamespaces(),
            "the agent cannot make namespaces for tasks: Operation not permitted; it does not run as root");
}

TEST_F(SelfCheckTest, SaysThatTasksGetNoNamespaces) {
  needs_.why_no_namespaces = [] { return "the agent cannot make namespaces for tasks"; };
  EXPECT_EQ(WhyNoStart(needs_), "the agent cannot make namespaces for tasks");
}

TEST(Namespaces, WhatPassesIsTriedAgain) {
  int error = ENOMEM, tries = 0;
  const auto look = LookForNamespaces([&] { return ++tries, error; });
  EXPECT_THAT(look(), HasSubstr("Cannot allocate memory"));
  error = 0;
  EXPECT_EQ(look(), "");
  EXPECT_EQ(look(), "");
  EXPECT_EQ(tries, 2);
}

TEST(Namespaces, WhatTheyAreNotAllowedIsTriedOnce) {
  int tries = 0;
  const auto look = LookForNamespaces([&] { return ++tries, EPERM; });
  EXPECT_THAT(look(), HasSubstr("not permitted"));
  EXPECT_THAT(look(), HasSubstr("not permitted"));
  EXPECT_EQ(tries, 1);
}

TEST_F(SelfCheckTest, SaysNothingAgainstANodeThatHasWhatAStartNeeds) { EXPECT_EQ(WhyNoStart(needs_), ""); }

TEST_F(SelfCheckTest, LeavesNothingBehind) {
  ASSERT_EQ(WhyNoStart(needs_), "");
  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

TEST_F(SelfCheckTest, NamesAStateFolderThatCannotBeWritten) {
  needs_.state_dir += "/is-not-there";
  EXPECT_THAT(WhyNoStart(needs_), HasSubstr("its state folder cannot be written: "));
}

TEST_F(SelfCheckTest, NamesAFolderInWhichNoneCanBeMade) {
  needs_.temp_dir = folder_ + "/is-not-there";
  EXPECT_THAT(WhyNoStart(needs_), HasSubstr(needs_.temp_dir));
}

TEST_F(SelfCheckTest, NamesAProgramThatIsMissing) {
  unlink(program_.c_str());
  EXPECT_THAT(WhyNoStart(needs_), HasSubstr(program_));
}

}  // namespace
}  // namespace siding
