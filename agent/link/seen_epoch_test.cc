#include "agent/link/seen_epoch.h"

#include <stdlib.h>

#include <filesystem>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class SeenEpochTest : public testing::Test {
 protected:
  SeenEpochTest() : folder_(mkdtemp(name_)) {}
  ~SeenEpochTest() override { std::filesystem::remove_all(folder_); }

  char name_[32] = "/tmp/siding-epoch-XXXXXX";
  const std::string folder_;
  const std::string path_ = folder_ + "/epoch";
};

TEST_F(SeenEpochTest, TheFirstIsAccepted) { EXPECT_TRUE(SeenEpoch::Open(path_)->Accept(7).ok()); }
TEST_F(SeenEpochTest, AControllerThatKnowsOfNoEpochsIsTheOldestThereIs) {
  SeenEpoch seen = *SeenEpoch::Open(path_);
  EXPECT_TRUE(seen.Accept(0).ok());
  EXPECT_TRUE(seen.Accept(7).ok());
  EXPECT_FALSE(seen.Accept(0).ok());
}
TEST_F(SeenEpochTest, TheSameComesBack) {
  SeenEpoch seen = *SeenEpoch::Open(path_);
  EXPECT_TRUE(seen.Accept(7).ok());
  EXPECT_TRUE(seen.Accept(7).ok());
}
TEST_F(SeenEpochTest, AnOlderOneIsRefusedAlsoAfterARestart) {
  EXPECT_TRUE(SeenEpoch::Open(path_)->Accept(7).ok());
  const absl::Status refused = SeenEpoch::Open(path_)->Accept(6);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("its epoch is 6"));
}
TEST_F(SeenEpochTest, WhatTheDiskDidNotTakeIsWrittenAtTheNextCall) {
  SeenEpoch seen = *SeenEpoch::Open(path_);
  std::filesystem::remove(folder_);
  EXPECT_TRUE(seen.Accept(7).ok());
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(seen.Accept(7).ok());
  EXPECT_FALSE(SeenEpoch::Open(path_)->Accept(6).ok());
}
TEST_F(SeenEpochTest, AFileWithSomethingElseInItIsNamed) {
  ASSERT_TRUE(WriteFileAtomically(path_, "seven").ok());
  EXPECT_THAT(std::string(SeenEpoch::Open(path_).status().message()),
              testing::HasSubstr(path_ + ": 'seven'"));
}

}  // namespace
}  // namespace siding
