#include "agent/checkpoint/file_contents.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/files.h"
#include "gtest/gtest.h"
#include "store/checksum.h"

namespace siding {
namespace {

class FileContentsTest : public ::testing::Test {
 protected:
  FileContentsTest() {
    char name[] = "/tmp/siding-contents-XXXXXX";
    path_ = std::string(mkdtemp(name)) + "/file";
  }
  ~FileContentsTest() override { std::filesystem::remove_all(std::filesystem::path(path_).parent_path()); }

  // Writes the file anew, with times that say that this was long ago where `at` is small.
  void Write(const std::string& text, time_t at) {
    UniqueFd fd(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
    ASSERT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ASSERT_EQ(fstat(fd.get(), &info_), 0);
    info_.st_mtim = info_.st_ctim = {at, 0};
  }
  std::string Content() { return contents_.Of(path_, info_, budget_); }

  std::string path_;
  struct stat info_ {};
  FileContents contents_;
  ReadBudget budget_{Bytes{100}, std::chrono::steady_clock::time_point::max()};
};

TEST_F(FileContentsTest, IsReadOnceAsLongAsTheTimesAreTheSame) {
  Write("one", 1);
  EXPECT_EQ(Content(), store::ChecksumOf("one"));
  EXPECT_EQ(budget_.bytes.value, 97);
  EXPECT_EQ(Content(), store::ChecksumOf("one"));
  EXPECT_EQ(budget_.bytes.value, 97) << "it was read again";
}

TEST_F(FileContentsTest, IsReadAgainAfterAChange) {
  Write("one", 1);
  Content();
  Write("two", 2);
  EXPECT_EQ(Content(), store::ChecksumOf("two"));
}

TEST_F(FileContentsTest, WhatWasChangedThisMomentIsNotRemembered) {
  const time_t far = 1 << 30;
  Write("one", time(nullptr) + far);
  Content();
  EXPECT_EQ(Content(), store::ChecksumOf("one"));
  EXPECT_EQ(budget_.bytes.value, 94);
}

TEST_F(FileContentsTest, WhatIsLongerThanTheBudgetIsNotRead) {
  Write(std::string(101, 'x'), 1);
  EXPECT_EQ(Content(), "");
  EXPECT_EQ(budget_.bytes.value, 100);
}

TEST_F(FileContentsTest, WhatTakesLongerThanTheBudgetIsNotKnown) {
  Write("one", 1);
  budget_.until = {};
  EXPECT_EQ(Content(), "");
}

TEST_F(FileContentsTest, AFileThatHasBecomeShorterIsNotKnown) {
  Write("one", 1);
  info_.st_size = 4;
  EXPECT_EQ(Content(), "");
}

}  // namespace
}  // namespace siding
