#include "common/room.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class RoomTest : public testing::Test {
 protected:
  RoomTest() {
    char name[] = "/tmp/siding-room-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RoomTest() override { std::filesystem::remove_all(folder_); }
  std::string room() const { return folder_ + "/room"; }
  std::string path() const { return folder_ + "/record"; }

  std::string folder_;
};

TEST_F(RoomTest, HasItsBlocks) {
  ASSERT_TRUE(TakeRoom(room(), 10'000, 0600).ok());
  struct stat file {};
  ASSERT_EQ(stat(room().c_str(), &file), 0);
  EXPECT_GE(file.st_blocks * 512, 10'000);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(RoomTest, TakesThePlaceOfAnEarlierFile) {
  ASSERT_TRUE(WriteFileDurably(path(), "an earlier record").ok());
  ASSERT_TRUE(TakeRoom(room(), 4096).ok());
  ASSERT_TRUE(WriteInRoom(room(), path(), "a record").ok());
  EXPECT_EQ(ReadFile(path()).value(), "a record");
  EXPECT_FALSE(std::filesystem::exists(room()));
}

TEST_F(RoomTest, IsNotMadeSmallerByBeingTakenAgain) {
  ASSERT_TRUE(TakeRoom(room(), 3 * 4096).ok());
  ASSERT_TRUE(TakeRoom(room(), 1).ok());
  EXPECT_TRUE(WriteInRoom(room(), path(), std::string(3 * 4096, 'x')).ok());
}

TEST_F(RoomTest, OneThatIsTooSmallIsRefused) {
  ASSERT_TRUE(WriteFileDurably(path(), "an earlier record").ok());
  ASSERT_TRUE(TakeRoom(room(), 1).ok());
  EXPECT_TRUE(absl::IsOutOfRange(WriteInRoom(room(), path(), std::string(1 << 20, 'x'))));
  EXPECT_EQ(ReadFile(path()).value(), "an earlier record");
}

TEST_F(RoomTest, IsUsedAgainAfterAnError) {
  ASSERT_TRUE(TakeRoom(room(), 4096).ok());
  std::filesystem::create_directories(path() + "/in the way");
  EXPECT_FALSE(WriteInRoom(room(), path(), "a longer record").ok());
  std::filesystem::remove_all(path());
  ASSERT_TRUE(WriteInRoom(room(), path(), "a record").ok());
  EXPECT_EQ(ReadFile(path()).value(), "a record");
}

TEST_F(RoomTest, WithoutOneNothingIsWritten) {
  EXPECT_TRUE(absl::IsNotFound(WriteInRoom(room(), path(), "a record")));
}

}  // namespace
}  // namespace siding
