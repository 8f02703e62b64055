#include "controller/platform/slurm/nodes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

QueueNode Only(const std::string& text) {
  const auto nodes = ParseNodes(text);
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_EQ(nodes->size(), 1u);
  return nodes->front();
}

TEST(ParseNodes, ANodeThatWorks) {
  const QueueNode node = Only("node3|mixed|1/3/0/4|1000|gpu:h200:4(S:0-1)|batch*|none\n");
  EXPECT_EQ(node.id, NodeId("node3"));
  EXPECT_TRUE(node.up);
  EXPECT_FALSE(node.drained);
  EXPECT_EQ(node.cpus, 4);
  EXPECT_EQ(node.cpus_used, 1);
  EXPECT_EQ(node.memory, Bytes{1000 << 20});
  EXPECT_EQ(node.gpus, 4);
  EXPECT_THAT(node.partitions, ElementsAre("batch"));
  EXPECT_EQ(node.reason, "");
}

TEST(ParseNodes, ANodeThatIsDrained) {
  const QueueNode node = Only("node2|drained|0/0/4/4|1000|(null)|batch*|two words | and more\n");
  EXPECT_TRUE(node.up);
  EXPECT_TRUE(node.drained);
  EXPECT_EQ(node.reason, "two words | and more");
}

TEST(ParseNodes, ANodeThatDoesNotAnswerIsNotUp) {
  EXPECT_FALSE(Only("n|idle*|0/4/0/4|1|(null)|b|none\n").up);
  EXPECT_FALSE(Only("n|down|0/0/4/4|1|(null)|b|Not responding\n").up);
  EXPECT_FALSE(Only("n|unknown*|0/0/4/4|1|(null)|b|none\n").up);
  EXPECT_TRUE(Only("n|idle-|0/4/0/4|1|(null)|b|none\n").up);
  EXPECT_EQ(Only("n|idle*|0/4/0/4|1|(null)|b|none\n").state, "idle");
}

TEST(ParseNodes, ANodeOfTwoPartitionsIsOne) {
  const QueueNode node = Only("n|idle|0/4/0/4|1|(null)|batch*|none\nn|idle|0/4/0/4|1|(null)|ondemand|none\n");
  EXPECT_THAT(node.partitions, ElementsAre("batch", "ondemand"));
}

TEST(ParseNodes, NoNodesAreNoError) { EXPECT_THAT(*ParseNodes(""), IsEmpty()); }

TEST(ParseNodes, ErrorsNameTheLine) {
  for (const std::string bad :
       {"sinfo: error", "n|idle|4|1|(null)|b|none", "n|idle|0/4/0/4|much|(null)|b|none"}) {
    const auto nodes = ParseNodes("n|idle|0/4/0/4|1|(null)|b|none\n" + bad + "\n");
    EXPECT_TRUE(absl::IsInvalidArgument(nodes.status())) << bad;
    EXPECT_NE(std::string(nodes.status().message()).find("line 2"), std::string::npos) << nodes.status();
  }
}

}  // namespace
}  // namespace siding::slurm
