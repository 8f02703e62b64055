#include "common/files.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"

namespace siding {
namespace {

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    char name[] = "/tmp/siding-files-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(FilesTest, WritesAndReadsBack) {
  ASSERT_TRUE(WriteFileDurably(folder_ + "/x", "hello").ok());
  EXPECT_EQ(*ReadFile(folder_ + "/x"), "hello");
}

TEST_F(FilesTest, FailureLeavesNothingBehind) {
  std::filesystem::create_directory(folder_ + "/x");  // rename over a folder fails
  EXPECT_FALSE(WriteFileDurably(folder_ + "/x", "hello").ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(FilesTest, MissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ReadFile(folder_ + "/none").status()));
}

}  // namespace
}  // namespace siding
