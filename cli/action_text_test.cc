#include "cli/action_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kMade = 1'000'000'000;

v1::ActionPlan PlanOf(const char* verb) {
  v1::ActionPlan plan;
  plan.set_verb(verb);
  plan.set_sequence(41);
  plan.set_made_us(kMade);
  plan.set_job(1);
  plan.set_job_name("train");
  plan.add_nodes("n1");
  plan.set_tier(v1::SHARED);
  plan.set_bytes(64 << 20);
  plan.set_done_us(kMade + 2'000'000);
  plan.set_loss_node_seconds(3.25);
  return plan;
}

TEST(ActionText, AVacate) {
  EXPECT_EQ(
      ActionText(PlanOf("vacate")),
      "vacate: job 1 (train) has left n1, with an image of 64.0 MiB in shared storage in 2.00s; for 3.2 "
      "node-seconds, and while it waits for nodes\n"
      "  no deadline that you may see waits for nodes\n"
      "nothing was changed; --if-unchanged 41 gives the order if this still holds\n");
}

TEST(ActionText, AMigrationSaysWhereTo) {
  v1::ActionPlan plan = PlanOf("migrate");
  plan.add_target("n3");
  EXPECT_THAT(ActionText(plan), StartsWith("migrate: job 1 (train) runs on n3, from an image of 64.0 MiB"));
}

TEST(ActionText, AKillSaysWhatIsLost) {
  EXPECT_THAT(
      ActionText(PlanOf("kill")),
      StartsWith(
          "kill: job 1 (train) has ended in 2.00s at the latest; 3.2 node-seconds of work are lost\n"));
}

TEST(ActionText, OneThatWaitsSaysWhenItBegins) {
  v1::ActionPlan plan = PlanOf("suspend");
  plan.set_begins_us(kMade + 1'000'000);
  EXPECT_THAT(
      ActionText(plan),
      HasSubstr(
          "is frozen in 2.00s, which begins when it has been saved, in 1.00s; for 3.2 node-seconds, and "
          "until it is resumed\n"));
}

TEST(ActionText, WhatIsNotKnownIsSaid) {
  v1::ActionPlan plan = PlanOf("vacate");
  plan.set_done_us(0);
  plan.set_deadlines_left_out(2);
  EXPECT_THAT(ActionText(plan), HasSubstr("; how long that takes is not known\n"
                                          "  so it is not known either what becomes of deadlines: 2 wait for "
                                          "nodes\nnothing"));
}

TEST(ActionText, AKillOfWhichNobodyKnowsTheEndStillSaysWhatIsLost) {
  v1::ActionPlan plan = PlanOf("kill");
  plan.set_done_us(0);
  EXPECT_THAT(ActionText(plan), StartsWith("kill: job 1 (train) has ended; how long that takes is not known; "
                                           "3.2 node-seconds of work are lost\n"));
}

TEST(ActionText, ACordonSaysWhoStays) {
  v1::ActionPlan plan = PlanOf("cordon");
  EXPECT_THAT(ActionText(plan), StartsWith("cordon: node n1 takes nothing new; no job has it\n"));
  plan.add_stay(4);
  EXPECT_THAT(ActionText(plan), StartsWith("cordon: node n1 takes nothing new; job 4 stays\n"));
}

TEST(ActionText, DeadlinesWithTheirMarginsBeforeAndAfter) {
  v1::ActionPlan plan = PlanOf("kill");
  v1::DeadlineChange& deadline = *plan.add_deadlines();
  deadline.set_request(4);
  deadline.set_name("steer");
  deadline.set_start_by_us(kMade + 60'000'000);
  deadline.set_before_us(kMade + 65'000'000);
  deadline.set_after_us(kMade + 10'000'000);
  EXPECT_THAT(ActionText(plan),
              HasSubstr(": starts 50.0s before it, and without this starts 5.00s too late\n"));
  deadline.set_before_us(kMade + 10'000'000);
  EXPECT_THAT(ActionText(plan), HasSubstr(": starts 50.0s before it, as without this\n"));
  deadline.set_after_us(0);
  EXPECT_THAT(ActionText(plan), HasSubstr(": is not served, and without this starts 50.0s before it\n"));
  plan.set_deadlines_left_out(2);
  EXPECT_THAT(ActionText(plan), HasSubstr("  and 2 later deadlines\n"));
}

}  // namespace
}  // namespace siding::cli
