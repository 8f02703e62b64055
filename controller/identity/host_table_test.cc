#include "controller/identity/host_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

class HostTableTest : public testing::Test {
 protected:
  void Fill(const std::string& host, int first, int count) {
    for (int fd = first; fd < first + count; ++fd) {
      ASSERT_TRUE(table_.MayAdd(host).ok());
      inodes_[fd] = 1000 + fd;
      table_.Add(fd, host);
    }
  }
  std::map<int, uint64_t> inodes_;
  HostTable table_{{.remote_connections = 5, .connections_per_host = 3},
                   [this](int fd) { return inodes_[fd]; }};
};

TEST_F(HostTableTest, AHostMayHaveSoMany) {
  Fill("a", 10, 3);
  EXPECT_THAT(table_.MayAdd("a").message(),
              HasSubstr("a has 3 connections already; limits.connections_per_host"));
}
TEST_F(HostTableTest, AHostDoesNotTakeWhatIsAnothers) {
  Fill("a", 10, 3);
  EXPECT_TRUE(table_.MayAdd("b").ok());
}
TEST_F(HostTableTest, AllHostsMayHaveSoMany) {
  Fill("a", 10, 3);
  Fill("b", 20, 2);
  EXPECT_THAT(table_.MayAdd("c").message(), HasSubstr("limits.remote_connections is 5"));
}
TEST_F(HostTableTest, AClosedConnectionMakesRoom) {
  Fill("a", 10, 3);
  inodes_[11] = 0;
  EXPECT_TRUE(table_.MayAdd("a").ok());
}
TEST_F(HostTableTest, ANumberThatIsUsedAgainIsOneConnection) {
  Fill("a", 10, 3);
  inodes_[11] = 7;
  table_.Add(11, "b");
  Fill("a", 12 + 1, 1);
  EXPECT_FALSE(table_.MayAdd("a").ok());
}

}  // namespace
}  // namespace siding
