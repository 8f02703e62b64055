#include "launch/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace siding::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GangTest : public ::testing::Test {
 protected:
  absl::StatusOr<Gang> Find() const {
    return FindGang([this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::string Error() const { return std::string(Find().status().message()); }

  std::map<std::string, std::string> variables_ = {{"SIDING_RANK", "1"},
                                                   {"SIDING_SLOTS", "4"},
                                                   {"SIDING_GANG_IF", "siding0"},
                                                   {"SIDING_GANG_ADDRS", "10.83.0.1,10.83.0.2"}};
};

TEST_F(GangTest, IsWhatTheEnvironmentSays) {
  const auto gang = Find();
  ASSERT_TRUE(gang.ok());
  EXPECT_EQ(gang->rank, 1);
  EXPECT_EQ(gang->slots, 4);
  EXPECT_EQ(gang->link, "siding0");
  EXPECT_THAT(gang->addresses, ElementsAre("10.83.0.1", "10.83.0.2"));
}

TEST_F(GangTest, OutsideOfSuchAJobItSaysWhatToDo) {
  variables_.erase("SIDING_GANG_ADDRS");
  EXPECT_EQ(Find().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Error(), HasSubstr("submit it with --connections keep"));
}

TEST_F(GangTest, AVariableThatIsNotRightIsNamed) {
  variables_["SIDING_RANK"] = "2";
  EXPECT_THAT(Error(), HasSubstr("SIDING_RANK: expected a number from 0 to 1, not '2'"));
  variables_["SIDING_RANK"] = "0";
  variables_["SIDING_SLOTS"] = "many";
  EXPECT_THAT(Error(), HasSubstr("SIDING_SLOTS"));
  variables_["SIDING_SLOTS"] = "1";
  variables_.erase("SIDING_GANG_IF");
  EXPECT_THAT(Error(), HasSubstr("SIDING_GANG_IF"));
}

}  // namespace
}  // namespace siding::launch
