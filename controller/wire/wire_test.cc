#include "controller/wire/wire.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

v1::JobSpec Good() {
  v1::JobSpec spec;
  spec.set_name("x");
  spec.set_nodes(2);
  spec.mutable_per_node()->set_slots(1);
  spec.add_command("/bin/true");
  spec.set_workdir("/tmp");
  spec.set_output("/tmp/out");
  return spec;
}

std::string ErrorOf(const v1::JobSpec& spec) { return std::string(FromProto(spec).status().message()); }

TEST(Wire, RulesHaveTheSameNamesEverywhere) {
  for (int i = 1; i < kKeepRuleCount; ++i) {
    PlanKeep keep;
    keep.rule = static_cast<KeepRule>(i);
    const std::string name = v1::KeepRule_Name(ToProto(keep).rule());
    EXPECT_EQ(absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", "-"}}), ToString(keep.rule));
  }
}

TEST(Wire, WithoutAGraceAJobHasTheUsualOne) {
  EXPECT_EQ(FromProto(Good())->kill_grace, JobSpec().kill_grace);
}

TEST(Wire, ADeadlineIsATimeOrTheEarliest) {
  v1::JobSpec spec = Good();
  spec.set_start_by_earliest(true);
  EXPECT_THAT(ErrorOf(spec), testing::HasSubstr("start_by"));
  spec.set_on_demand(true);
  spec.set_not_before_us(4000000);
  EXPECT_EQ(FromProto(spec)->start_by, kEarliest);
  spec.set_start_by_us(5000000);
  EXPECT_THAT(ErrorOf(spec), testing::HasSubstr("either a time or earliest"));
}

TEST(Wire, AJobSpecComesBackAsItWent) {
  v1::JobSpec spec = Good();
  spec.set_on_demand(true);
  spec.set_start_by_us(5000000);
  spec.add_methods(v1::SUSPEND);
  spec.add_methods(v1::APP);
  spec.mutable_app()->set_signal(10);
  spec.mutable_app()->set_grace_us(7);
  spec.mutable_app()->set_marker("/m");
  spec.set_kill_grace_us(0);
  spec.set_max_preemptions(3);
  spec.set_not_before_us(4000000);
  spec.set_hold_us(9'000'000);
  spec.set_walltime_us(9'000'000);
  spec.set_notice_us(11);
  spec.set_gpu_collectives(v1::DRAINABLE);
  spec.set_allow_io_uring(true);
  spec.set_append_files(true);
  spec.set_keep_connections(true);
  spec.set_on_node_failure(v1::PARK);
  (*spec.mutable_labels())["qos"] = "low";
  (*spec.mutable_env())["A"] = "b";
  const auto model = FromProto(spec);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ToProto(*model).SerializeAsString(), spec.SerializeAsString());
}

TEST(Wire, CollectivesAreOfAKnownKind) {
  v1::JobSpec spec = Good();
  spec.set_gpu_collectives(static_cast<v1::GpuCollectives>(7));
  EXPECT_THAT(ErrorOf(spec), HasSubstr("gpu_collectives: expected as-is or drainable, got number 7"));
}

TEST(Wire, WhatFollowsANodesFailureIsOfAKnownKind) {
  v1::JobSpec spec = Good();
  spec.set_on_node_failure(static_cast<v1::OnNodeFailure>(7));
  EXPECT_THAT(ErrorOf(spec), HasSubstr("on_node_failure: expected requeue or park, got number 7"));
}

TEST(Wire, HoldIsAWalltimeByAnotherName) {
  v1::JobSpec spec = Good();
  spec.set_on_demand(true);
  spec.set_start_by_us(5'000'000);
  spec.set_hold_us(9'000'000);
  EXPECT_EQ(FromProto(spec)->walltime, std::chrono::seconds(9));
  spec.clear_hold_us();
  spec.set_walltime_us(8'000'000);
  EXPECT_EQ(FromProto(spec)->hold, std::chrono::seconds(8));
}
TEST(Wire, ABatchJobMayHaveAWalltime) {
  v1::JobSpec spec = Good();
  spec.set_walltime_us(8'000'000);
  EXPECT_EQ(FromProto(spec)->walltime, std::chrono::seconds(8));
}
TEST(Wire, TimesThatAreNoneAreRefused) {
  v1::JobSpec spec = Good();
  spec.set_walltime_us(1);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("walltime: expected 1s or more, got <1ms"));
  spec = Good();
  spec.add_methods(v1::CHECKPOINT);
  spec.set_checkpoint_interval_us(1000);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("checkpoint_interval: expected 1s or more, or 0s for none, got 1ms"));
}

TEST(Wire, WantsACommand) {
  v1::JobSpec spec = Good();
  spec.clear_command();
  EXPECT_THAT(ErrorOf(spec), HasSubstr("command"));
}
TEST(Wire, WantsANode) {
  v1::JobSpec spec = Good();
  spec.set_nodes(0);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("nodes: expected 1 or more, got 0"));
}
TEST(Wire, WantsAbsolutePaths) {
  v1::JobSpec spec = Good();
  spec.set_output("out");
  EXPECT_THAT(ErrorOf(spec), HasSubstr("output"));
}
TEST(Wire, WantsADeadlineOfOnDemandJobsOnly) {
  v1::JobSpec spec = Good();
  spec.set_start_by_us(1);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("start_by"));
}
TEST(Wire, WantsASignalForTheAppMethod) {
  v1::JobSpec spec = Good();
  spec.add_methods(v1::APP);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("app"));
}
TEST(Wire, RefusesAScheduleThatNoMethodCanKeep) {
  v1::JobSpec spec = Good();
  spec.set_checkpoint_interval_us(1'000'000);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("checkpoint_interval"));
  spec.add_methods(v1::APP);
  spec.mutable_app()->set_signal(10);
  spec.mutable_app()->set_grace_us(7);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("checkpoint_interval"));
  spec.mutable_app()->set_marker("/m");
  EXPECT_EQ(ErrorOf(spec), "");
}
TEST(Wire, RefusesANoticeThatNoMethodGives) {
  v1::JobSpec spec = Good();
  spec.set_notice_us(1);
  spec.add_methods(v1::KILL);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("notice"));
  spec.add_methods(v1::SUSPEND);
  EXPECT_EQ(ErrorOf(spec), "");
}
TEST(Wire, RefusesANoticeOfMoreThanADay) {
  v1::JobSpec spec = Good();
  spec.add_methods(v1::SUSPEND);
  spec.set_notice_us(86'400'000'001);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("notice"));
}
TEST(Wire, RefusesASignalThatCannotBeCaught) {
  v1::JobSpec spec = Good();
  spec.add_methods(v1::APP);
  spec.mutable_app()->set_signal(9);
  spec.mutable_app()->set_grace_us(7);
  EXPECT_THAT(ErrorOf(spec), HasSubstr("catch"));
}

TEST(Wire, NobodyButAnAgentSaysThatAClusterManagerStartsAJob) {
  v1::JobSpec spec = Good();
  spec.set_cluster_manager("manager");
  EXPECT_THAT(ErrorOf(spec), HasSubstr("cluster_manager"));
}

TEST(Wire, OfAManagedJobTheProgramNeedNotBeKnown) {
  v1::JobSpec spec;
  spec.set_cluster_manager("manager");
  spec.add_methods(v1::CHECKPOINT);
  const auto managed = ManagedFromProto(spec);
  ASSERT_TRUE(managed.ok()) << managed.status();
  EXPECT_EQ(managed->cluster_manager, "manager");
  EXPECT_FALSE(ManagedFromProto(Good()).ok());
}

}  // namespace
}  // namespace siding
