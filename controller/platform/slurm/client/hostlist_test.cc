#include "controller/platform/slurm/client/hostlist.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Expand(const std::string& text) {
  const auto nodes = ExpandHostlist(text);
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  std::vector<std::string> names;
  for (const NodeId& node : *nodes) names.push_back(node.value());
  return names;
}

TEST(Hostlist, NamesStandForThemselves) { EXPECT_THAT(Expand("n1,login-2"), ElementsAre("n1", "login-2")); }

TEST(Hostlist, NothingIsNobody) {
  EXPECT_THAT(Expand(""), IsEmpty());
  EXPECT_THAT(Expand("(null)"), IsEmpty());
}

TEST(Hostlist, RangesKeepTheirDigits) {
  EXPECT_THAT(Expand("node[1-3,07-10]"),
              ElementsAre("node1", "node2", "node3", "node07", "node08", "node09", "node10"));
}

TEST(Hostlist, NumbersGrowBeyondTheirDigits) {
  EXPECT_THAT(Expand("n[9-11]"), ElementsAre("n9", "n10", "n11"));
}

// As `scontrol show hostnames` prints them.
TEST(Hostlist, SeveralBracketsCountLikeAnOdometer) {
  EXPECT_THAT(Expand("x[1-2]y[3-4],z"), ElementsAre("x1y3", "x1y4", "x2y3", "x2y4", "z"));
}

TEST(Hostlist, ErrorsNameWhatIsWrong) {
  for (const std::string text : {"n[1-3", "n1-3]", "n[[1]]", "n[]", "n[3-1]", "n[a-b]", "n[1-]", "n1,,n2",
                                 ",", "n[0-1000000]", "n[0-9999][0-9999]"}) {
    const auto nodes = ExpandHostlist(text);
    EXPECT_TRUE(absl::IsInvalidArgument(nodes.status())) << text;
    EXPECT_NE(std::string(nodes.status().message()).find("node list"), std::string::npos) << text;
  }
}

TEST(Hostlist, IsWrittenWithCommas) {
  EXPECT_EQ(JoinHostlist({NodeId("a"), NodeId("b")}), "a,b");
  EXPECT_EQ(JoinHostlist({}), "");
}

// A message of a few kilobytes, which any user may send, must not become gigabytes.
TEST(Hostlist, AShortListDoesNotStandForMoreThanThereCanBe) {
  std::string many = "n[1-99999]";
  for (int i = 0; i < 500; ++i) many += ",n[1-99999]";
  EXPECT_TRUE(absl::IsInvalidArgument(ExpandHostlist(many).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ExpandHostlist(std::string(8000, 'n') + "[1-99999]").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ExpandHostlist("n[" + std::string(8000, '0') + "1-99999]").status()));
}

}  // namespace
}  // namespace siding::slurm
