#include "cli/verbs/backup_draft.h"

#include <stdlib.h>

#include <filesystem>
#include <optional>

#include "gtest/gtest.h"

namespace siding::cli {
namespace {

class BackupDraftTest : public testing::Test {
 protected:
  BackupDraftTest() : folder_(mkdtemp(name_)), file_(folder_ + "/backup") {}
  ~BackupDraftTest() override { std::filesystem::remove_all(folder_); }
  char name_[32] = "/tmp/siding-backup-XXXXXX";
  const std::string folder_;
  const std::string file_;
};

TEST_F(BackupDraftTest, OneThatIsGivenUpIsRemoved) {
  {
    BackupDraft draft(file_);
    ASSERT_TRUE(draft.Begin().ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(BackupDraftTest, OneAtATime) {
  BackupDraft first(file_);
  ASSERT_TRUE(first.Begin().ok());
  BackupDraft second(file_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.Begin()));
}

TEST_F(BackupDraftTest, OneThatIsFinishedIsNotEmptiedByTheNext) {
  std::optional<BackupDraft> first(file_);
  ASSERT_TRUE(first->Begin().ok());
  ASSERT_TRUE(first->Write("whole").ok());
  BackupDraft second(file_);  // has the first one's file open
  ASSERT_TRUE(first->Name(file_).ok());
  first.reset();
  ASSERT_TRUE(second.Begin().ok());
  EXPECT_EQ(ReadFile(file_).value(), "whole");
}

}  // namespace
}  // namespace siding::cli
