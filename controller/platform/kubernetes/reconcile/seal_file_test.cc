#include "controller/platform/kubernetes/reconcile/seal_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

class SealFileTest : public testing::Test {
 protected:
  SealFileTest() : folder_(mkdtemp(name_)) {}
  ~SealFileTest() override { std::filesystem::remove_all(folder_); }

  char name_[32] = "/tmp/siding-test.XXXXXX";
  const std::string folder_;
  const std::string path_ = folder_ + "/kubernetes-seal";
  SealFile file_{path_};
};

TEST_F(SealFileTest, AtFirstThereIsNone) { EXPECT_TRUE(absl::IsNotFound(file_.Read().status())); }
TEST_F(SealFileTest, WhatIsKeptIsRead) {
  std::string key(Seal::kKeySize, 'k');
  key[3] = '\0';
  ASSERT_TRUE(file_.Keep(key).ok());
  EXPECT_EQ(*SealFile(path_).Read(), key);
}
TEST_F(SealFileTest, NobodyElseMayReadIt) {
  ASSERT_TRUE(file_.Keep(std::string(Seal::kKeySize, 'k')).ok());
  struct stat found {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600);
}
TEST_F(SealFileTest, WhatIsNoKeyIsNotTakenForNone) {
  ASSERT_TRUE(WriteFileDurably(path_, "").ok());
  EXPECT_THAT(file_.Read().status().message(), HasSubstr("kubernetes-seal: expected 32 bytes"));
}

}  // namespace
}  // namespace siding::kubernetes
