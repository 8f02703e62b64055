#include "agent/os/names.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class NodeClusterTest : public testing::Test {
 protected:
  NodeClusterTest() {
    char name[] = "/tmp/siding-names-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/cluster";
  }
  ~NodeClusterTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, path_;
};

TEST_F(NodeClusterTest, ANodeWithoutOneDrawsItsName) {
  const std::string name = NodeCluster(path_).Name();
  EXPECT_TRUE(IsClusterName(name)) << name;
  EXPECT_EQ(NodeCluster(path_).Name(), name);
  EXPECT_NE(NodeCluster(folder_ + "/other").Name(), name);
}

TEST_F(NodeClusterTest, ItsControllerSaysWhichItIs) {
  {
    NodeCluster cluster(path_);
    cluster.Join(0xabc);
    EXPECT_EQ(cluster.Name(), "0000000000000abc");
  }
  EXPECT_EQ(NodeCluster(path_).Name(), "0000000000000abc");
}

TEST_F(NodeClusterTest, OneThatHasNoneSaysNothing) {
  NodeCluster cluster(path_);
  const std::string before = cluster.Name();
  cluster.Join(0);
  EXPECT_EQ(cluster.Name(), before);
}

TEST_F(NodeClusterTest, WhatIsNoNameIsNotTakenForOne) {
  for (const char* text : {"", "abc", "../../../../root", "0000000000000ABC", "0000000000000abcd"}) {
    EXPECT_FALSE(IsClusterName(text)) << text;
    ASSERT_TRUE(WriteFileAtomically(path_, text).ok());
    EXPECT_TRUE(IsClusterName(NodeCluster(path_).Name())) << text;
  }
}

TEST_F(NodeClusterTest, WithoutItsFolderANodeHasAName) {
  NodeCluster cluster(folder_ + "/none/cluster");
  EXPECT_TRUE(IsClusterName(cluster.Name()));
}

TEST(NamesTest, HaveTheClusterInThem) {
  const ProgramNames names{"0000000000000abc", 4, 1};
  EXPECT_EQ(names.Tmpdir(1000), "/tmp/siding-0000000000000abc-1000-job-4.1");
  EXPECT_EQ(names.SharedMemoryMark(), "0000000000000abc.4.1");
  EXPECT_EQ(NameOutside("4.2.1", "0000000000000abc"), "4.2.1.0000000000000abc");
}

TEST(NamesTest, ProcessesOfManyJobsInARowHaveOtherNumbers) {
  std::set<int> first;
  for (int job = 1; job <= 1000; ++job) first.insert(ProgramNames{"0000000000000abc", job, 0}.FirstProcess());
  EXPECT_EQ(first.size(), 1000u);
  EXPECT_GE(*first.begin(), 300);
  EXPECT_LE(*first.rbegin(), 32768 / 2 + 300);
}

TEST(NamesTest, SoHaveThoseOfRanksAndOfOtherClusters) {
  const int one = ProgramNames{"0000000000000abc", 4, 0}.FirstProcess();
  EXPECT_NE(one, (ProgramNames{"0000000000000abc", 4, 1}.FirstProcess()));
  EXPECT_NE(one, (ProgramNames{"0000000000000abd", 4, 0}.FirstProcess()));
}

TEST(NamesTest, ThoseOfEarlierVersionsAreFound) {
  const ProgramNames names{"", 4, 1};
  EXPECT_EQ(names.Tmpdir(1000), "/tmp/siding-1000-job-4.1");
  EXPECT_EQ(names.SharedMemoryMark(), "4.1");
  EXPECT_EQ(NameOutside("4.2.1", ""), "4.2.1");
}

}  // namespace
}  // namespace siding
