#include "policy/policy_text.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "policy/policy_file.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Policy Parsed(const std::string& text) {
  const auto file = ParsePolicyFile(text, "p.yaml");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? file->policy : Policy();
}

// What it says and what the text of that says is the same.
void ExpectReadsBack(const Policy& policy) {
  const std::string text = ToYaml(policy);
  EXPECT_EQ(ToYaml(Parsed(text)), text);
}

TEST(ToYaml, HasEveryKeyOfTheDefaults) {
  EXPECT_EQ(ToYaml(Policy()), R"(strategy: least-loss
confidence: 0.95
margin: 1s
min_runtime: 0s
cooldown: 0s
max_preemptions: 100
delay_weight: 0
unused_node_weight: 0
frozen_node_weight: 0
expected_hold: 10m
node_failures_per_year: 0
most_lost_work: 0s
checkpoint_bandwidth: 0.1
checkpoint_stops: 0.01
checkpoint_tier: shared
copy_images: true
shared_bandwidth: 0
headroom_nodes: 0
when_late: refuse
after_walltime: end
budget_steps: 4096
keep_checkpoints: 2
keep_failed_images: 168h
operators: [root]
gpu_collectives: as-is
allow_io_uring: false
private_jobs: true
users_raise_priority: false
max_jobs_per_user: 10000
max_requests_per_hour: 20000
max_request_mib_per_hour: 256
max_image_bytes_per_user: 0
max_kill_grace: 5m
max_notice: 24h
)");
}
TEST(ToYaml, AClassIsALine) {
  Policy policy;
  policy.classes.push_back(
      {.name = "vip", .match = {{{"user", {"ada", "bob"}}}}, .methods = {{Method::kSuspend}}});
  EXPECT_THAT(ToYaml(policy), HasSubstr("\n  - {name: vip, match: {user: [ada, bob]}, methods: [suspend], "
                                        "strict: false, loss_weight: 1}\n"));
}
TEST(ToYaml, ARuleIsALine) {
  Policy policy;
  policy.on_demand.push_back({.match = {{{"account", {"beam"}}}}, .max_nodes = 4, .node_hours_per_day = 0.5});
  EXPECT_THAT(
      ToYaml(policy),
      HasSubstr("\n  - {match: {account: [beam]}, allowed: true, max_nodes: 4, node_hours_per_day: 0.5}\n"));
}
TEST(ToYaml, EveryValueOfAClassIsReadBack) {
  Policy policy;
  policy.classes.push_back({.name = "all",
                            .methods = std::vector<Method>{},
                            .strict = true,
                            .min_runtime = 90s,
                            .cooldown = 1500ms,
                            .max_preemptions = 0,
                            .loss_weight = 0.1,
                            .delay_weight = 1e6});
  const JobClass c = Parsed(ToYaml(policy)).classes.at(0);
  EXPECT_TRUE(c.methods && c.methods->empty());
  EXPECT_TRUE(c.strict);
  EXPECT_EQ(c.min_runtime, 90s);
  EXPECT_EQ(c.cooldown, 1500ms);
  EXPECT_EQ(c.max_preemptions, 0);
  EXPECT_EQ(c.loss_weight, 0.1);
  EXPECT_EQ(c.delay_weight, 1e6);
}
TEST(ToYaml, DurationsAreExact) {
  const Policy policy{.margin = 1'000'001us};
  EXPECT_EQ(Parsed(ToYaml(policy)).margin, policy.margin);
}
TEST(ToYaml, NumbersAreExact) {
  const Policy policy{.delay_weight = 1.0 / 3};
  EXPECT_EQ(Parsed(ToYaml(policy)).delay_weight, policy.delay_weight);
}
TEST(ToYaml, NamesThatLookLikeSomethingElseAreQuoted) {
  const Policy policy{.operators = {"1001", "no", "a: b", ""}};
  EXPECT_THAT(ToYaml(policy), HasSubstr(R"(operators: ["", "1001", "a: b", "no"])"));
}
TEST(ToYaml, StrangeNamesAreReadBack) {
  const Policy policy{.operators = {"1001", "no", "a: b", "[x", "\"q\"", "é"}};
  EXPECT_EQ(Parsed(ToYaml(policy)).operators, policy.operators);
}
TEST(ToYaml, ShippedPoliciesAreReadBack) {
  for (const auto& entry : std::filesystem::directory_iterator(SIDING_SOURCE_DIR "/policies")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path());
    const auto file = LoadPolicyFile(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    ExpectReadsBack(file->policy);
    EXPECT_EQ(Describe(Parsed(ToYaml(file->policy))), Describe(file->policy));
  }
}

TEST(Changes, ThereAreNoneBetweenEqualPolicies) { EXPECT_THAT(Changes(Policy(), Policy()), IsEmpty()); }
TEST(Changes, AChangedValueIsTheOldLineAndTheNew) {
  EXPECT_THAT(Changes(Policy{.margin = 1s}, Policy{.margin = 2s}), ElementsAre("-margin: 1s", "+margin: 2s"));
}
TEST(Changes, ANewClassIsALine) {
  const Policy before = Parsed("classes:\n- {name: a}\n");
  EXPECT_THAT(Changes(before, Parsed("classes:\n- {name: b}\n- {name: a}\n")),
              ElementsAre("+  - {name: b, strict: false, loss_weight: 1}"));
}
TEST(Changes, TheOrderOfClassesIsAChange) {
  const Policy before = Parsed("classes:\n- {name: a}\n- {name: b}\n");
  EXPECT_THAT(Changes(before, Parsed("classes:\n- {name: b}\n- {name: a}\n")),
              ElementsAre("-  - {name: a, strict: false, loss_weight: 1}",
                          "+  - {name: a, strict: false, loss_weight: 1}"));
}
TEST(Changes, TheLastRuleTakesItsKeyAlong) {
  EXPECT_THAT(Changes(Parsed("on_demand:\n- allowed: false\n"), Policy()),
              ElementsAre("-on_demand:", "-  - {allowed: false}"));
}

}  // namespace
}  // namespace siding
