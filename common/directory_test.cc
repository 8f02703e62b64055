#include "common/directory.h"

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::UnorderedElementsAre;

class DirectoryTest : public testing::Test {
 protected:
  DirectoryTest() : folder_(mkdtemp(name_)) {}
  ~DirectoryTest() override { std::filesystem::remove_all(folder_); }
  // A link to itself: what is behind it cannot be told, which some calls throw for.
  std::string Loop() const {
    std::filesystem::create_symlink(folder_ + "/loop", folder_ + "/loop");
    return folder_ + "/loop";
  }
  char name_[32] = "/tmp/siding-directory-XXXXXX";
  const std::string folder_;
};

TEST_F(DirectoryTest, NamesAreListed) {
  std::filesystem::create_directory(folder_ + "/a");
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/b", "").ok());
  EXPECT_THAT(ListFolder(folder_).value(), UnorderedElementsAre("a", "b"));
}

TEST_F(DirectoryTest, MissingFolderIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ListFolder(folder_ + "/none").status()));
}

TEST_F(DirectoryTest, WhatCannotBeLookedAtIsAnError) {
  const std::string loop = Loop();
  EXPECT_FALSE(ListFolder(loop).ok());
  EXPECT_FALSE(MakeDirectories(loop).ok());
}

TEST_F(DirectoryTest, FileThatWasRenamedHasItsNameNoMore) {
  const std::string file = folder_ + "/file";
  const UniqueFd fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(IsNamed(fd.get(), file));
  std::filesystem::rename(file, folder_ + "/other");
  EXPECT_FALSE(IsNamed(fd.get(), file));
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  EXPECT_FALSE(IsNamed(fd.get(), file));
}

}  // namespace
}  // namespace siding
