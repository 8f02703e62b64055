#include "agent/checkpoint/thread_settings.h"

#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ThreadSettings, AListOfCpusIsNumbersAndRanges) {
  EXPECT_THAT(ParseCpus("0-3,7"), ElementsAre(0, 1, 2, 3, 7));
  EXPECT_THAT(ParseCpus("5"), ElementsAre(5));
  for (const char* bad : {"", "x", "3-1", "-1", "1-", "0-99999999", "1,,2"})
    EXPECT_THAT(ParseCpus(bad), IsEmpty()) << bad;
}

TEST(ThreadSettings, GoThroughJson) {
  const std::vector<ThreadSettings> settings = {{17, "0-3,7", 4, -1, ""}, {18, "", -1, 50000, "00000013"}};
  EXPECT_EQ(*ThreadSettingsFromJson(ThreadSettingsToJson(settings)), settings);
}

TEST(ThreadSettings, OtherJsonIsDamage) {
  for (const char* bad : {"", "{", "[1]", R"([{"thread": "x"}])"})
    EXPECT_TRUE(absl::IsDataLoss(ThreadSettingsFromJson(bad).status())) << bad;
}

TEST(ThreadSettings, CpusThatAreNotHereAreNotedAndNotTaken) {
  const auto notes = PutThreadSettingsBack(getpid(), {{getpid(), "8000", -1, -1, ""}});
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the CPUs 8000 only")));
}

}  // namespace
}  // namespace siding
