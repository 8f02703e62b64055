#include "sim/trace.h"

#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/draw.h"

namespace siding::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Trace Swf(const std::string& text) {
  std::istringstream in(text);
  return *ReadSwf(in, "t.swf");
}

TEST(Swf, ReadsJobsInTheOrderOfSubmission) {
  const Trace trace =
      Swf("; MaxNodes: 64\n2 50 0 7 4 -1 -1 4 9 -1 0 -1 -1 -1 -1 -1 -1 0\n1 20 0 5 2 -1 -1 -1 3\n");
  EXPECT_EQ(trace.nodes, 64);
  ASSERT_EQ(trace.jobs.size(), 2u);
  EXPECT_EQ(trace.jobs[0].nodes, 2);      // what it had, as it does not say what it asked for
  EXPECT_EQ(trace.jobs[0].requested, 5);  // no less than it took
  EXPECT_EQ(trace.jobs[1].submit, 30);
  EXPECT_EQ(trace.jobs[1].requested, 9);
}
TEST(Swf, NamesBrokenLinesAndGoesOn) {
  const Trace trace = Swf("1 20 0 5 2\n2 30 zero 5 2\n3 40 0 -1 2\n\n4 50 0 5\n");
  EXPECT_EQ(trace.jobs.size(), 1u);
  EXPECT_THAT(trace.skipped, ElementsAre(HasSubstr("line 2: expected 18 numbers"),
                                         HasSubstr("line 3: runtime: expected"), HasSubstr("line 5")));
}
TEST(Swf, AJobOfAnotherAgeIsLeftOut) {
  for (const char* stray : {"9 1e18 0 5 2\n", "9 -1e18 0 5 2\n"}) {
    const Trace trace = Swf(absl::StrCat("1 20 0 5 2\n2 50 0 5 2\n", stray));
    ASSERT_EQ(trace.jobs.size(), 2u);
    EXPECT_EQ(trace.jobs[1].submit, 30);
    EXPECT_THAT(trace.skipped,
                ElementsAre(HasSubstr("1 job was submitted ten years or more before or after")));
  }
}
TEST(Swf, NoJobRunsForAnAge) {
  const Trace trace = Swf("1 20 0 5 2\n2 30 0 1e18 2\n");
  EXPECT_THAT(trace.skipped, ElementsAre(HasSubstr("line 2: runtime: expected ten years at most")));
}
TEST(Swf, AnEmptyTraceIsAnError) {
  std::istringstream in("; nothing\n");
  EXPECT_THAT(ReadSwf(in, "t.swf").status().message(), HasSubstr("t.swf: there is no job in it"));
}
TEST(Philly, ReadsItsColumns) {
  std::istringstream in(
      "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,2,132.0,x\nsoon,1,1,1,x\n");
  const Trace trace = *ReadPhilly(in, "p.csv");
  ASSERT_EQ(trace.jobs.size(), 1u);
  EXPECT_EQ(trace.jobs[0].runtime, 66);
  EXPECT_EQ(trace.jobs[0].nodes, 2);
  EXPECT_THAT(trace.skipped, ElementsAre(HasSubstr("line 3")));
}
TEST(Trace, AFileThatIsNotThereIsNamed) {
  EXPECT_THAT(ReadTrace("/nowhere.swf", false).status().message(), HasSubstr("/nowhere.swf"));
}

Trace OneJob(int nodes) {
  Trace trace;
  trace.name = "t";
  trace.nodes = 4;
  trace.jobs = {{0, 10, 10, nodes}};
  return trace;
}

TEST(Draw, ImpossibleParametersAreNamed) {
  Parameters p;
  p.on_demand_share = 2;
  EXPECT_THAT(Draw(OneJob(1), p).status().message(), HasSubstr("on-demand-share: expected 0 to 1"));
  p = {};
  p.notice_mix = {{0, 0}};
  EXPECT_THAT(Draw(OneJob(1), p).status().message(), HasSubstr("notice-mix"));
  p.notice_mix = {{0, 2}};
  EXPECT_THAT(Draw(OneJob(1), p).status().message(), HasSubstr("expected shares that add up to 1, got 2"));
  p = {};
  p.checkpoint_least = 0.9;
  EXPECT_THAT(Draw(OneJob(1), p).status().message(), HasSubstr("checkpoint-fraction"));
}
TEST(Draw, AMachineWithoutNodesIsAnError) {
  Trace trace = OneJob(1);
  trace.nodes = 0;
  EXPECT_THAT(Draw(trace, {}).status().message(), HasSubstr("expected --nodes"));
}
TEST(Draw, JobsLargerThanTheMachineAreCounted) {
  Trace trace = OneJob(5);
  EXPECT_THAT(Draw(trace, {}).status().message(), HasSubstr("every job is larger"));
  trace.jobs.push_back({0, 10, 10, 1});
  EXPECT_EQ(Draw(trace, {})->dropped.size(), 1u);
}
TEST(Draw, TheSameSeedDrawsTheSame) {
  Trace trace = OneJob(1);
  trace.jobs.resize(50, trace.jobs[0]);
  const Workload a = *Draw(trace, {}), b = *Draw(trace, {});
  for (size_t j = 0; j < 50; ++j) EXPECT_EQ(a.jobs[j].bytes, b.jobs[j].bytes);
}
TEST(Draw, TheShareOfLostDisksChangesNothingElse) {
  Trace trace;
  trace.nodes = 100;
  trace.jobs = {{0, kYear, kYear, 100}};
  const auto failures = [&](double disks_lost) {
    Parameters p;
    p.failures_per_node_year = 20;
    p.disks_lost = disks_lost;
    return Draw(trace, p)->failures;
  };
  const std::vector<Failure> all = failures(1), some = failures(0.2);
  ASSERT_EQ(all.size(), some.size());
  double lost = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::pair(all[i].at, all[i].node), std::pair(some[i].at, some[i].node));
    EXPECT_TRUE(all[i].loses_disk);
    lost += some[i].loses_disk;
  }
  EXPECT_NEAR(lost / all.size(), 0.2, 0.03);
}

TEST(ReadSwf, NumbersThatNoMachineHasAreCut) {
  std::istringstream in("; MaxNodes: 1e300\n1 0 5 100 1e300\n");
  const auto trace = ReadSwf(in, "t");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->nodes, 1'000'000'000);
  EXPECT_EQ(trace->jobs[0].nodes, 1'000'000'000);
}

}  // namespace
}  // namespace siding::sim
