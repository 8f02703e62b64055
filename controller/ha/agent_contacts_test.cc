#include "controller/ha/agent_contacts.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class AgentContactsTest : public testing::Test {
 protected:
  AgentContactsTest() : folder_(mkdtemp(name_)) {}
  ~AgentContactsTest() override { std::filesystem::remove_all(folder_); }
  // By node, of all processes.
  std::map<NodeId, int64_t> Read() const {
    std::map<NodeId, int64_t> times;
    for (const auto& [who, count] : ReadAgentContacts(journal_)) times[who.second] += count;
    return times;
  }

  char name_[40] = "/tmp/siding-contacts-XXXXXX";
  const std::string folder_, journal_ = folder_ + "/journal.db";
};

TEST_F(AgentContactsTest, NobodyAtFirst) { EXPECT_THAT(ReadAgentContacts(journal_), testing::IsEmpty()); }
TEST_F(AgentContactsTest, EachNodeIsCounted) {
  AgentContactsFile file(journal_, "head2:7433");
  file.Count(NodeId("n1"));
  file.Count(NodeId("n2"));
  file.Count(NodeId("n2"));
  ASSERT_TRUE(file.Write().ok());
  EXPECT_EQ(Read(), (std::map<NodeId, int64_t>{{NodeId("n1"), 1}, {NodeId("n2"), 2}}));
}
TEST_F(AgentContactsTest, TwoThatStandByAreKeptApart) {
  AgentContactsFile one(journal_, "head2:7433"), other(journal_, "/run/siding.sock");
  one.Count(NodeId("n1"));
  other.Count(NodeId("n1"));
  ASSERT_TRUE(one.Write().ok());
  ASSERT_TRUE(other.Write().ok());
  EXPECT_EQ(ReadAgentContacts(journal_).size(), 2u);
}
TEST_F(AgentContactsTest, OneThatStandsByNoMoreTakesItBack) {
  {
    AgentContactsFile file(journal_, "head2:7433");
    file.Count(NodeId("n1"));
    ASSERT_TRUE(file.Write().ok());
  }
  EXPECT_THAT(ReadAgentContacts(journal_), testing::IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}
TEST_F(AgentContactsTest, OneThatWasRestartedIsAnotherProcess) {
  AgentContactsFile killed(journal_, "head2:7433");
  killed.Count(NodeId("n1"));
  ASSERT_TRUE(killed.Write().ok());
  const AgentContacts before = ReadAgentContacts(journal_);
  AgentContactsFile restarted(journal_, "head2:7433");
  restarted.Count(NodeId("n1"));
  ASSERT_TRUE(restarted.Write().ok());
  const AgentContacts after = ReadAgentContacts(journal_);
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(after.begin()->first.first, before.begin()->first.first);
}
TEST_F(AgentContactsTest, AFileThatCannotBeReadSaysNothing) {
  std::ofstream(journal_ + ".asked.x") << "{\"process\": 7}";
  std::ofstream(journal_ + ".asked.y") << "no";
  EXPECT_THAT(ReadAgentContacts(journal_), testing::IsEmpty());
}

}  // namespace
}  // namespace siding
