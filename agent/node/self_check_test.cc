#include "agent/node/self_check.h"

#include <unistd.h>

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
    needs_ = {folder_, folder_, {program_}, Freezer::WithSignals()};
  }
  ~SelfCheckTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, program_;
  StartNeeds needs_{"", "", {}, Freezer::WithSignals()};
};

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
