#include "controller/config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string PolicyError(const std::string& text) {
  return std::string(ParsePolicy(text, "p.yaml").status().message());
}

TEST(Config, ReadsEveryPolicyField) {
  const auto policy = ParsePolicy(
      "margin: 2s\nmin_runtime: 1m\ncooldown: 3m\nmax_preemptions: 4\nbudget_steps: 32\nkeep_checkpoints: 1\n"
      "operators: [ada, bob]\n",
      "p.yaml");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->margin, 2s);
  EXPECT_EQ(policy->cooldown, 3min);
  EXPECT_EQ(policy->budget_steps, 32);
  EXPECT_EQ(policy->operators, (std::set<std::string>{"ada", "bob"}));
}
TEST(Config, AnEmptyFileIsTheDefaults) { EXPECT_TRUE(ParsePolicy("", "p.yaml").ok()); }
TEST(Config, UnknownKeysAreErrorsWithTheirLine) {
  EXPECT_THAT(PolicyError("margin: 1s\nmargni: 2s\n"), HasSubstr("p.yaml:2: unknown key 'margni'"));
}
TEST(Config, WrongValuesSayWhatWasExpected) {
  EXPECT_THAT(PolicyError("\n\nmargin: soon\n"), HasSubstr("p.yaml:3: margin: expected a duration"));
}
TEST(Config, BrokenYamlHasALine) { EXPECT_THAT(PolicyError("a: [1,\n"), HasSubstr("p.yaml:")); }
TEST(Config, NumbersHaveARange) { EXPECT_THAT(PolicyError("keep_checkpoints: 0"), HasSubstr("from 1 to")); }
TEST(Config, ShippedPoliciesAreGood) {
  const auto policy = LoadPolicy(SIDING_SOURCE_DIR "/policies/default.yaml");
  EXPECT_TRUE(policy.ok()) << policy.status();
}

}  // namespace
}  // namespace siding
