#include "policy/policy_file.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string ErrorOf(const std::string& text) {
  return std::string(ParsePolicyFile(text, "p.yaml").status().message());
}
std::vector<std::string> WarningsOf(const std::string& text) {
  return ParsePolicyFile(text, "p.yaml")->warnings;
}

TEST(PolicyFile, ReadsEveryField) {
  const auto file = ParsePolicyFile(R"(
strategy: pbs-order
margin: 2s
confidence: 0.9
min_runtime: 1m
cooldown: 3m
max_preemptions: 4
delay_weight: 0.5
unused_node_weight: 0.25
frozen_node_weight: 0.75
node_failures_per_year: 0.5
most_lost_work: 1m
checkpoint_bandwidth: 0.25
checkpoint_stops: 0.02
checkpoint_tier: local
copy_images: false
shared_bandwidth: 40GiB
expected_hold: 20m
headroom_nodes: 2
budget_steps: 32
keep_checkpoints: 1
keep_failed_images: 3d
when_late: queue
after_walltime: preemptible
operators: [ada, bob]
gpu_collectives: drainable
allow_io_uring: true
private_jobs: false
users_raise_priority: true
max_jobs_per_user: 7
max_image_bytes_per_user: 1.5TiB
classes:
- name: low
  match: {qos: low, user: [eve, mallory]}
  methods: [kill, checkpoint]
  strict: true
  min_runtime: 0s
  cooldown: 1s
  max_preemptions: 9
  loss_weight: 0.1
  delay_weight: 2
  most_lost_work: 0s
on_demand:
- match: {account: lab}
  max_nodes: 8
  node_hours_per_day: 100
- allowed: false
)",
                                    "p.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  const Policy& p = file->policy;
  EXPECT_EQ(p.strategy, Strategy::kPbsOrder);
  EXPECT_EQ(p.margin, 2s);
  EXPECT_EQ(p.confidence, 0.9);
  EXPECT_EQ(p.cooldown, 3min);
  EXPECT_EQ(p.delay_weight, 0.5);
  EXPECT_EQ(p.unused_node_weight, 0.25);
  EXPECT_EQ(p.frozen_node_weight, 0.75);
  EXPECT_EQ(p.node_failures_per_year, 0.5);
  EXPECT_EQ(p.most_lost_work, 1min);
  EXPECT_EQ(p.checkpoint_bandwidth, 0.25);
  EXPECT_EQ(p.checkpoint_stops, 0.02);
  EXPECT_EQ(p.checkpoint_tier, Tier::kLocal);
  EXPECT_FALSE(p.copy_images);
  EXPECT_EQ(p.shared_bandwidth, Bytes{40LL << 30});
  EXPECT_EQ(p.expected_hold, 20min);
  EXPECT_EQ(p.headroom_nodes, 2);
  EXPECT_EQ(p.budget_steps, 32);
  EXPECT_EQ(p.keep_failed_images, 72h);
  EXPECT_EQ(p.when_late, WhenLate::kQueue);
  EXPECT_EQ(p.after_walltime, AfterWalltime::kPreemptible);
  EXPECT_THAT(p.operators, ElementsAre("ada", "bob"));
  EXPECT_TRUE(p.users_raise_priority);
  ASSERT_EQ(p.classes.size(), 1u);
  EXPECT_EQ(p.classes[0].match.any_of.at("user"), (std::set<std::string>{"eve", "mallory"}));
  EXPECT_THAT(*p.classes[0].methods, ElementsAre(Method::kKill, Method::kCheckpoint));
  EXPECT_TRUE(p.classes[0].strict);
  EXPECT_EQ(p.classes[0].max_preemptions, 9);
  EXPECT_EQ(p.classes[0].loss_weight, 0.1);
  EXPECT_EQ(p.classes[0].delay_weight, 2);
  EXPECT_EQ(p.classes[0].most_lost_work, Duration(0));
  ASSERT_EQ(p.on_demand.size(), 2u);
  EXPECT_EQ(p.on_demand[0].max_nodes, 8);
  EXPECT_FALSE(p.on_demand[1].allowed);
  EXPECT_THAT(file->warnings, ElementsAre(HasSubstr("no checkpoint on schedule outlives its node")));
}

TEST(PolicyFile, CheckpointsGetAPartOfTheBandwidth) {
  EXPECT_THAT(ErrorOf("checkpoint_bandwidth: 10\n"), HasSubstr("p.yaml:1: checkpoint_bandwidth: expected"));
  EXPECT_THAT(ErrorOf("checkpoint_bandwidth: 0\n"), HasSubstr("expected"));
}

TEST(PolicyFile, SaysWhatProtectionMayCost) {
  const auto said = [](const std::string& text) { return Describe(ParsePolicyFile(text, "p.yaml")->policy); };
  const char* const bounds =
      "such checkpoints take no more than 10 % of the shared tier's bandwidth, and stop a job for no more "
      "than 1 % of its time\n";
  EXPECT_THAT(said("most_lost_work: 1m\n"), HasSubstr(bounds));
  EXPECT_THAT(said("classes:\n- most_lost_work: 1m\n"), HasSubstr(bounds));
  EXPECT_THAT(said("most_lost_work: 0s\n"), Not(HasSubstr(bounds)));
}

TEST(PolicyFile, AnEmptyFileIsTheDefaults) { EXPECT_EQ(ErrorOf(""), ""); }
TEST(PolicyFile, AnEmptyListOfMethodsProtects) {
  const auto file = ParsePolicyFile("classes:\n- {name: vip, match: {user: ada}, methods: []}\n", "p.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->policy.classes[0].methods->empty());
}
TEST(PolicyFile, UnknownMethodsSayWhichThereAre) {
  EXPECT_EQ(ErrorOf("classes:\n- methods: [stop]\n"),
            "p.yaml:2: classes[1].methods: expected suspend, checkpoint, app or kill");
}
TEST(PolicyFile, UnknownStrategiesSayWhichThereAre) {
  EXPECT_THAT(ErrorOf("strategy: best\n"),
              HasSubstr("p.yaml:1: strategy: expected least-loss, slurm-preempt"));
}
TEST(PolicyFile, AMatchNeedsNames) {
  EXPECT_THAT(ErrorOf("classes:\n- match: {user: []}\n"), HasSubstr("for user a name or a list"));
}
TEST(PolicyFile, ClassesHaveNamesOfTheirOwn) {
  EXPECT_THAT(ErrorOf("classes:\n- name: a\n- name: a\n"), HasSubstr("two are called a"));
}
TEST(PolicyFile, WarnsOfAClassThatNoJobCanBeIn) {
  EXPECT_THAT(WarningsOf("classes:\n- name: all\n- name: low\n"),
              ElementsAre(HasSubstr("class low is never used")));
}
TEST(PolicyFile, WarnsIfNobodyMayMakeWay) {
  EXPECT_THAT(WarningsOf("max_preemptions: 0\n"), ElementsAre(HasSubstr("no job may ever be a victim")));
  EXPECT_THAT(WarningsOf("classes:\n- methods: []\n"), ElementsAre(HasSubstr("no job may ever be a victim")));
}
TEST(PolicyFile, WarnsIfNoCheckpointOutlivesItsNode) {
  EXPECT_THAT(WarningsOf("checkpoint_tier: local\n"), IsEmpty());
  EXPECT_THAT(WarningsOf("checkpoint_tier: local\ncopy_images: false\n"),
              ElementsAre(HasSubstr("no checkpoint on schedule outlives its node")));
}
TEST(PolicyFile, WarnsIfNobodyIsAnOperator) {
  EXPECT_THAT(WarningsOf("operators: []\n"), ElementsAre(HasSubstr("only root may act on nodes")));
}
TEST(PolicyFile, WarnsIfNobodyMayAsk) {
  EXPECT_THAT(WarningsOf("on_demand:\n- allowed: false\n"), ElementsAre(HasSubstr("no user may ask")));
}
TEST(PolicyFile, ShippedPoliciesAreGoodAndSayWhatTheyMean) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SIDING_SOURCE_DIR "/policies")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const auto file = LoadPolicyFile(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_THAT(file->warnings, IsEmpty()) << entry.path();
  }
  EXPECT_EQ(files, 7);
}

}  // namespace
}  // namespace siding
