#include "controller/platform/slurm/submit/question.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using Given = std::map<std::string, std::string>;

JobSpec Of(const Given& options) {
  Question question;
  question.options = options;
  const auto spec = SpecOf(question);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : JobSpec{};
}

constexpr int64_t kMiB = 1 << 20;

TEST(SpecOf, AJobThatAsksForNothingTakesOneSlot) {
  const JobSpec spec = Of({});
  EXPECT_EQ(spec.nodes, 1);
  EXPECT_EQ(spec.per_node, (Resources{1, Bytes{0}, 0}));
}

TEST(SpecOf, ItIsAnOnDemandJobOfSlurms) {
  Question question;
  question.uid = 1000;
  question.start_by = FromMicros(7);
  question.not_before = FromMicros(6);
  const auto spec = SpecOf(question);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->kind, JobKind::kOnDemand);
  EXPECT_EQ(spec->cluster_manager, "slurm");
  EXPECT_EQ(spec->uid, 1000u);
  EXPECT_EQ(spec->start_by, FromMicros(7));
  EXPECT_EQ(spec->not_before, FromMicros(6));
}

TEST(SpecOf, OfARangeOfNodesTheLeastCounts) {
  EXPECT_EQ(Of({{"nodes", "2"}}).nodes, 2);
  EXPECT_EQ(Of({{"nodes", "2-4"}}).nodes, 2);
}

TEST(SpecOf, NodesThatAreNotSaidFollowFromTheRest) {
  EXPECT_EQ(Of({{"nodelist", "node[1-3]"}}).nodes, 3);
  EXPECT_EQ(Of({{"ntasks", "5"}, {"ntasks-per-node", "2"}}).nodes, 3);
  EXPECT_EQ(Of({{"ntasks-per-node", "2"}}).nodes, 1);
  EXPECT_EQ(Of({{"ntasks", "5"}}).nodes, 1);
}

TEST(SpecOf, SlotsAreForTheNodeWithMostTasks) {
  EXPECT_EQ(Of({{"nodes", "2"}, {"ntasks", "5"}}).per_node.slots, 3);
  EXPECT_EQ(Of({{"nodes", "2"}, {"ntasks", "5"}, {"cpus-per-task", "4"}}).per_node.slots, 12);
  EXPECT_EQ(Of({{"nodes", "2"}, {"ntasks-per-node", "3"}}).per_node.slots, 3);
  EXPECT_EQ(Of({{"mincpus", "6"}}).per_node.slots, 6);
  EXPECT_EQ(Of({{"gpus", "2"}, {"cpus-per-gpu", "8"}}).per_node.slots, 16);
}

TEST(SpecOf, MemoryIsInSlurmsUnits) {
  EXPECT_EQ(Of({{"mem", "1500"}}).per_node.memory, Bytes{1500 * kMiB});
  EXPECT_EQ(Of({{"mem", "512K"}}).per_node.memory, Bytes{kMiB / 2});
  EXPECT_EQ(Of({{"mem", "2G"}}).per_node.memory, Bytes{2048 * kMiB});
  EXPECT_EQ(Of({{"mem", "3T"}}).per_node.memory, Bytes{3 * 1024 * 1024 * kMiB});
  EXPECT_EQ(Of({{"mem", "0?"}}).per_node.memory, Bytes{0});
}

TEST(SpecOf, MemoryMayBeSaidPerCpuOrGpu) {
  EXPECT_EQ(Of({{"mem-per-cpu", "100"}, {"cpus-per-task", "4"}}).per_node.memory, Bytes{400 * kMiB});
  EXPECT_EQ(Of({{"mem-per-gpu", "100"}, {"gpus-per-node", "2"}}).per_node.memory, Bytes{200 * kMiB});
}

TEST(SpecOf, GpusMayBeSaidInManyWays) {
  for (const Given& options : std::vector<Given>{{{"gres", "gres:gpu:h200:2,gres:nvme:4"}},
                                                 {{"gpus-per-node", "h200:1,a100:1"}},
                                                 {{"gpus", "3"}, {"nodes", "2"}},
                                                 {{"gpus-per-task", "1"}, {"ntasks", "2"}}}) {
    EXPECT_EQ(Of(options).per_node.gpus, 2) << options.begin()->first;
  }
}

TEST(SpecOf, TheTimeLimitIsHowLongItHoldsItsNodes) {
  EXPECT_EQ(Of({{"time", "1-02:00:00"}}).hold, std::chrono::hours(26));
  EXPECT_EQ(Of({{"time", "UNLIMITED"}}).hold, Duration{0});
}

TEST(SpecOf, WhatPoliciesAskForIsTakenOver) {
  const JobSpec spec = Of({{"job-name", "steer"}, {"partition", "batch"}, {"account", "physics"}});
  EXPECT_EQ(spec.name, "steer");
  EXPECT_EQ(spec.labels,
            (std::map<std::string, std::string>{{"partition", "batch"}, {"account", "physics"}}));
}

TEST(SpecOf, AnOptionThatCannotBeUnderstoodIsNamed) {
  for (const auto& [name, values] : std::map<std::string, std::vector<std::string>>{
           {"nodes", {"many", "0", "-1", "1-2-3", "2-", "9999999"}},
           {"nodelist", {"node[1-"}},
           {"ntasks", {"x", "0"}},
           {"cpus-per-task", {"1.5"}},
           {"mem", {"lots", "1.5G", "-1", "G", "9E", "9999999999T"}},
           {"time", {"soon"}}}) {
    for (const std::string& value : values) {
      Question question;
      question.options = {{name, value}};
      const absl::Status status = SpecOf(question).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << "=" << value;
      EXPECT_NE(std::string(status.message()).find("--" + name), std::string::npos) << status;
    }
  }
}

TEST(SpecOf, MoreThanThereCanBeIsRefused) {
  for (const Given& options : std::vector<Given>{{{"ntasks", "1000000"}, {"cpus-per-task", "2"}},
                                                 {{"gpus-per-task", "2000000"}},
                                                 {{"mem-per-cpu", "4000000T"}, {"ntasks", "1000"}}}) {
    Question question;
    question.options = options;
    EXPECT_TRUE(absl::IsInvalidArgument(SpecOf(question).status())) << options.begin()->first;
  }
}

TEST(SpecOf, WhichNodesItMayHaveIsTakenOver) {
  const JobSpec spec = Of({{"exclude", "n[1-2]"}, {"constraint", "new|fast"}, {"exclusive", "exclusive"}});
  EXPECT_EQ(spec.labels, (Given{{"exclude", "n[1-2]"}, {"constraint", "new|fast"}, {"exclusive", "yes"}}));
}

TEST(SpecOf, AConstraintThatIsNotPlannedWithIsRefused) {
  Question question;
  question.options = {{"constraint", "[rack1|rack2]"}};
  EXPECT_TRUE(absl::IsUnimplemented(SpecOf(question).status()));
}

TEST(SpecOf, AnArrayHasNoDeadline) {
  Question question;
  question.options = {{"array", "1-3"}};
  EXPECT_TRUE(absl::IsUnimplemented(SpecOf(question).status()));
}

}  // namespace
}  // namespace siding::slurm
