#include "store/follower.h"

#include "common/patience_for_test.h"
#include "store/test_support.h"

namespace siding::store {
namespace {

class FollowerTest : public FolderTest {
 protected:
  std::string File(const std::string& name = "pages-1.img") const { return folder_ + "/" + name; }
};

TEST_F(FollowerTest, HashesWhileTheFileGrows) {
  const std::string data = Pattern(4 << 20);
  Follower follower(folder_);
  ASSERT_TRUE(WriteAt(File(), data.substr(0, 2 << 20)));
  ASSERT_TRUE(Eventually([&] { return follower.hashed().value == 2 << 20; }));
  ASSERT_TRUE(WriteAt(File(), data.substr(2 << 20), 2 << 20));
  ASSERT_TRUE(Eventually([&] { return follower.hashed().value == 4 << 20; }));
  auto files = follower.Stop();
  EXPECT_EQ(files.at("pages-1.img").hash.Checksum(), ChecksumOf(data));
}

TEST_F(FollowerTest, LeavesFilesThatMayBeRewritten) {
  Follower follower(folder_);
  ASSERT_TRUE(WriteAt(File("core-1.img"), Pattern(2 << 20)));
  ASSERT_TRUE(Eventually([&] { return follower.seen().value == 2 << 20; }));
  EXPECT_TRUE(follower.Stop().empty());
}

TEST_F(FollowerTest, GivesUpAFileThatShrinks) {
  Follower follower(folder_);
  ASSERT_TRUE(WriteAt(File(), Pattern(4 << 20)));
  ASSERT_TRUE(Eventually([&] { return follower.hashed().value == 4 << 20; }));
  std::filesystem::resize_file(File(), 2 << 20);
  ASSERT_TRUE(Eventually([&] { return follower.seen().value == 2 << 20; }));
  EXPECT_TRUE(follower.Stop().empty());
}

TEST_F(FollowerTest, GivesUpAFileThatIsReplaced) {
  Follower follower(folder_);
  ASSERT_TRUE(WriteAt(File(), Pattern(2 << 20)));
  ASSERT_TRUE(Eventually([&] { return follower.hashed().value == 2 << 20; }));
  ASSERT_TRUE(WriteAt(File("new"), Pattern(3 << 20, 2)));
  std::filesystem::rename(File("new"), File());
  ASSERT_TRUE(Eventually([&] { return follower.seen().value == 3 << 20; }));
  EXPECT_TRUE(follower.Stop().empty());
}

TEST_F(FollowerTest, SurvivesThatItsFolderIsRemoved) {
  Follower follower(folder_);
  ASSERT_TRUE(WriteAt(File(), Pattern(2 << 20)));
  ASSERT_TRUE(Eventually([&] { return follower.hashed().value == 2 << 20; }));
  std::filesystem::remove_all(folder_);
  EXPECT_LE(follower.Stop().size(), 1u);
}

}  // namespace
}  // namespace siding::store
