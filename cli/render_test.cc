#include "cli/render.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Style kPlain{false, FromMicros(0)};

v1::Plan GoodPlan() {
  v1::Plan plan;
  plan.set_feasible(true);
  plan.set_exact(true);
  plan.add_nodes("n1");
  plan.add_nodes("n2");
  plan.set_predicted_start_us(2'000'000);
  plan.set_start_by_us(60'000'000);
  plan.set_loss_node_seconds(3.14);
  v1::PlanStep& step = *plan.add_steps();
  step.set_job(4);
  step.set_job_name("heat");
  step.set_method(v1::CHECKPOINT);
  step.set_tier(v1::SHARED);
  step.set_bytes(1 << 30);
  step.set_reason("cheapest");
  v1::PlanKeep& keep = *plan.add_kept();
  keep.set_job(5);
  keep.set_reason("not needed");
  return plan;
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(Table({{"A", "B"}, {"long", "x"}}, kPlain), "A     B\nlong  x\n");
}
TEST(FitTo, WhatFitsIsAsItIs) { EXPECT_EQ(FitTo("one\ntwo\n", 2, 80), "one\ntwo"); }
TEST(FitTo, TheLastLineSaysHowManyAreBelow) {
  EXPECT_EQ(FitTo("1\n2\n3\n4\n", 3, 80), "1\n2\n... and 2 more lines");
}
TEST(FitTo, LinesAreCutAtTheEdge) { EXPECT_EQ(FitTo("grün\nlonger\n", 9, 4), "grün\nlong"); }
TEST(FitTo, ColoursTakeNoRoomAndEnd) {
  EXPECT_EQ(FitTo("\033[32mrunning\033[0m x\n", 9, 4), "\033[32mrunn\033[0m");
}
TEST(WhyNot, AJobThatEndedMeanwhileSaysSo) {
  v1::Job job;
  job.set_state("done");
  EXPECT_EQ(WhyNotText(job), "it ended meanwhile, and is done");
  job.set_state("failed");
  job.set_reason("exit code 4");
  job.set_methods_note("uses io_uring");
  EXPECT_EQ(WhyNotText(job), "it ended meanwhile, and is failed: exit code 4");
}

TEST(WhyNot, OneThatRunsSaysWhatStandsInTheWay) {
  v1::Job job;
  job.set_state("running");
  job.set_reason("no");
  EXPECT_EQ(WhyNotText(job), "no");
  job.set_methods_note("uses io_uring");
  EXPECT_EQ(WhyNotText(job), "uses io_uring");
}

TEST(WhyNot, IsNeverEmpty) {
  v1::Job job;
  job.set_id(7);
  job.set_state("running");
  EXPECT_THAT(WhyNotText(job), HasSubstr("it is running; `sidingctl explain 7`"));
}

TEST(Why, AJobThatMayBeSuspendedNamesItsTimers) {
  v1::Job job;
  job.set_timer("process 12 (timeout) has a POSIX timer on CLOCK_REALTIME");
  EXPECT_EQ(WhyText(job), "") << "it is never suspended for others";
  job.add_methods(v1::SUSPEND);
  EXPECT_EQ(WhyText(job), "timers run on while it is suspended: " + job.timer());
}

TEST(Nodes, ALostOneSaysForHowLong) {
  v1::ListNodesResponse nodes;
  v1::Node& node = *nodes.add_nodes();
  node.set_name("n1");
  node.set_state("lost");
  node.set_lost_since_us(1);
  EXPECT_THAT(NodesTable(nodes, {false, FromMicros(3'000'001)}), HasSubstr("n1    lost for 3.00s"));
}
TEST(Nodes, AFaultyOneSaysWhy) {
  v1::ListNodesResponse nodes;
  for (const char* name : {"n1", "n2"}) {
    v1::Node& node = *nodes.add_nodes();
    node.set_name(name);
    node.set_state("up");
  }
  EXPECT_THAT(NodesTable(nodes, kPlain), Not(HasSubstr("FAULT")));
  nodes.mutable_nodes(0)->set_state("faulty");
  nodes.mutable_nodes(0)->set_fault("its state folder cannot be written");
  EXPECT_THAT(NodesTable(nodes, kPlain),
              AllOf(HasSubstr("FAULT\n"), HasSubstr("n1    faulty"),
                    HasSubstr("its state folder cannot be written\n"), HasSubstr("-\n")));
}
TEST(NodesTable, HasAColumnForStraysOnlyWhereThereAreSome) {
  v1::ListNodesResponse nodes;
  nodes.add_nodes()->set_name("n1");
  EXPECT_THAT(NodesTable(nodes, kPlain), Not(HasSubstr("STRAYS")));
  nodes.mutable_nodes(0)->add_strays("58.1.0");
  nodes.add_nodes()->set_name("n2");
  EXPECT_THAT(NodesTable(nodes, kPlain), AllOf(HasSubstr("STRAYS"), HasSubstr("58.1.0")));
}

TEST(Table, ACellIsOneLineAndSpeaksToNoTerminal) {
  EXPECT_EQ(Table({{"NAME", "X"}, {"a\n\033[2J", "b"}}, kPlain), "NAME        X\na\\n\\x1b[2J  b\n");
}
TEST(Table, ACellIsReadAsItIsWritten) {
  EXPECT_EQ(Table({{"NAME", "X"}, {"a\u202Eb", "c"}}, kPlain), "NAME      X\na\\u202eb  c\n");
}
TEST(Table, ACharacterIsAsWideAsAnother) {
  EXPECT_EQ(Table({{"A", "B"}, {"é…", "x"}}, kPlain), "A   B\né…  x\n");
}

v1::ListJobsResponse OneJob(const std::string& name) {
  v1::ListJobsResponse jobs;
  v1::Job& job = *jobs.add_jobs();
  job.set_id(1);
  job.set_state("pending");
  job.mutable_spec()->set_name(name);
  return jobs;
}

TEST(Jobs, LongNamesAreCutInTheTable) {
  const std::string table = JobsTable(OneJob(std::string(120, 'n')), kPlain);
  EXPECT_THAT(table, HasSubstr("  " + std::string(31, 'n') + "…  "));
  EXPECT_THAT(table, Not(HasSubstr(std::string(32, 'n'))));
  std::string accents;
  for (int i = 0; i < 40; ++i) accents += "é";
  EXPECT_THAT(JobsTable(OneJob(accents), kPlain), HasSubstr("  " + accents.substr(0, 62) + "…  "));
}
TEST(Jobs, TheyAreWholeWhereTheyAreAskedFor) {
  EXPECT_THAT(JobsTable(OneJob(std::string(120, 'n')), kPlain, true), HasSubstr(std::string(120, 'n')));
}
TEST(Jobs, WhySaysWhatAJobWaitsForBehindWhatHappened) {
  v1::ListJobsResponse jobs = OneJob("x");
  jobs.mutable_jobs(0)->set_reason("rank 0 on n1 is gone");
  jobs.mutable_jobs(0)->set_waits_for("waits behind job 4");
  EXPECT_THAT(JobsTable(jobs, kPlain), HasSubstr("  rank 0 on n1 is gone; waits behind job 4\n"));
}
TEST(Table, ColoursOnlyWhenAsked) {
  EXPECT_THAT(Table({{"STATE"}, {"running"}}, kPlain), Not(HasSubstr("\033")));
  EXPECT_THAT(Table({{"STATE"}, {"running"}}, {true, FromMicros(0)}), HasSubstr("\033[32mrunning"));
}
v1::JobSpec Running(const std::vector<std::string>& command) {
  v1::JobSpec spec;
  spec.mutable_command()->Assign(command.begin(), command.end());
  return spec;
}

TEST(Command, CanBeTypedIntoAShell) {
  EXPECT_EQ(CommandText(Running({"./heat", "--to=/tmp/x", "a b", "", "it's", "$HOME"})),
            "./heat --to=/tmp/x 'a b' '' 'it'\\''s' '$HOME'");
}

TEST(Command, IsOneLineThatSpeaksToNoTerminal) {
  EXPECT_EQ(CommandText(Running({"sh", "-c", "a\nb\033[2J"})), "sh -c 'a\\nb\\x1b[2J'");
}

TEST(Command, ALongOneIsCut) {
  const std::string text = CommandText(Running(std::vector<std::string>(5000, "word")));
  EXPECT_EQ(text.size(), 1003U);
  EXPECT_EQ(text.substr(1000), "...");
}

TEST(Command, OfOneWhoIsNotToldThereIsNoLine) {
  v1::ListJobsResponse jobs;
  jobs.add_jobs()->set_id(1);
  v1::Job& job = *jobs.add_jobs();
  job.set_id(2);
  *job.mutable_spec() = Running({"x"});
  EXPECT_EQ(CommandLines(jobs), "command of job 2: x\n");
}

TEST(Command, IsPartOfAnExplanation) {
  v1::ExplainResponse explanation;
  *explanation.mutable_job()->mutable_spec() = Running({"x"});
  EXPECT_THAT(ExplainText(explanation, kPlain), HasSubstr("\ncommand: x\n"));
}

v1::Job WaitingJob(v1::Back::Kind kind, int64_t predicted_us, int64_t latest_us) {
  v1::Job job;
  job.set_first_started_us(1);
  v1::Back& back = *job.mutable_back();
  back.set_predicted_us(predicted_us);
  back.set_latest_us(latest_us);
  if (predicted_us != 0) back.add_nodes("n1");
  back.mutable_because()->set_kind(kind);
  back.mutable_because()->set_job(7);
  back.mutable_because()->set_node("n1");
  return job;
}
int64_t In(Duration later) { return ToMicros(kPlain.now + later); }

v1::Job PlannedJob(int64_t start_us, int64_t margin_us) {
  v1::Job job;
  job.set_state("pending");
  job.mutable_plan()->set_feasible(true);
  job.mutable_plan()->set_predicted_start_us(start_us);
  job.mutable_plan()->set_margin_us(margin_us);
  return job;
}

TEST(PlanSummary, SaysWhenARequestsNodesAreFreeAndWhoHasMadeWay) {
  v1::Job job = PlannedJob(3'000'000, 12'000'000);
  EXPECT_EQ(PlanSummaryText(job, kPlain), "free in 3.00s, 12.0s before its deadline");
  job.mutable_plan()->set_victims(3);
  job.mutable_plan()->set_victims_away(1);
  EXPECT_EQ(PlanSummaryText(job, kPlain),
            "free in 3.00s, 12.0s before its deadline; 1 of 3 jobs have made way");
}
TEST(PlanSummary, SaysThatItWillBeLate) {
  EXPECT_EQ(PlanSummaryText(PlannedJob(3'000'000, -2'000'000), kPlain),
            "free in 3.00s, 2.00s after its deadline");
}
TEST(PlanSummary, SaysThatTheTimeHasPassed) {
  const Style later{false, FromMicros(5'000'000)};
  EXPECT_EQ(PlanSummaryText(PlannedJob(3'000'000, 9'000'000), later),
            "should have been free 2.00s ago, 9.00s before its deadline");
}
TEST(PlanSummary, IsEmptyWhereThereIsNoPlanOrItRuns) {
  EXPECT_EQ(PlanSummaryText(v1::Job(), kPlain), "");
  v1::Job job = PlannedJob(3'000'000, 9'000'000);
  job.set_state("running");
  EXPECT_EQ(PlanSummaryText(job, kPlain), "");
}

TEST(BackText, SaysWhenAndWhoseEndThatIs) {
  const int64_t then = In(std::chrono::seconds(60));
  EXPECT_EQ(BackText(WaitingJob(v1::Back::WALLTIME, then, then), kPlain),
            "back in 1m00s on n1, when job 7 on n1 has ended by its walltime, or before");
}
TEST(BackText, SaysThatAnEndIsOnlyExpected) {
  EXPECT_EQ(BackText(WaitingJob(v1::Back::EXPECTED, In(std::chrono::seconds(60)), 0), kPlain),
            "back in 1m00s on n1, when job 7 on n1 ends as the policy expects");
  EXPECT_EQ(
      BackText(WaitingJob(v1::Back::EXPECTED, In(std::chrono::seconds(60)), In(std::chrono::seconds(90))),
               kPlain),
      "back in 1m00s on n1, when job 7 on n1 ends as the policy expects; at the latest in 1m30s");
}
TEST(BackText, AJobThatHasNotRunStarts) {
  v1::Job job = WaitingJob(v1::Back::LEAVING, In(std::chrono::seconds(3)), 0);
  job.clear_first_started_us();
  EXPECT_EQ(BackText(job, kPlain), "starts in 3.00s on n1, when job 7 on n1 has left");
}
TEST(BackText, SaysWhyNobodyKnows) {
  v1::Job job = WaitingJob(v1::Back::NO_END, 0, 0);
  EXPECT_EQ(BackText(job, kPlain), "until when is not known: job 7 on n1 has no known end");
  job.mutable_back()->mutable_because()->set_image(true);
  EXPECT_EQ(BackText(job, kPlain),
            "until when is not known: job 7 on n1, where alone it can go on, has no known end");
}
TEST(BackText, IsEmptyWhereAllIsSaid) {
  EXPECT_EQ(BackText(v1::Job(), kPlain), "");
  EXPECT_EQ(BackText(WaitingJob(v1::Back::HELD, 0, 0), kPlain), "");
}

TEST(Plan, SaysWhatHappensToWhomAndWhy) {
  EXPECT_EQ(PlanText(GoodPlan(), kPlain),
            "plan: n1, n2 free in 2.00s, 58.0s before the deadline, for 3.1 node-seconds\n"
            "  checkpoint job 4 (heat) to shared storage, 1.0 GiB: cheapest\n"
            "  keep job 5: not needed\n");
}
v1::Plan PlanThatKeeps(int named, int jobs) {
  v1::Plan plan = GoodPlan();
  plan.clear_kept();
  for (int i = 0; i < named; ++i) {
    v1::PlanKeep& keep = *plan.add_kept();
    keep.set_job(5 + i);
    keep.set_reason("made way 3.00s ago");
    keep.set_rule(v1::COOLDOWN);
    keep.set_policy_key("cooldown");
  }
  v1::KeptGroup& group = *plan.add_kept_groups();
  group.set_rule(v1::COOLDOWN);
  group.set_policy_key("cooldown");
  group.set_jobs(jobs);
  return plan;
}
TEST(Plan, NamesAFewJobsThatAreLeftAlone) {
  EXPECT_THAT(PlanText(PlanThatKeeps(2, 2), kPlain),
              HasSubstr("  keep job 5: made way 3.00s ago\n  keep job 6: made way 3.00s ago\n"));
}
TEST(Plan, CountsManyOfThem) {
  const std::string text = PlanText(PlanThatKeeps(11, 11), kPlain);
  EXPECT_THAT(
      text,
      HasSubstr("  keep 11 jobs: cooldown (cooldown of the policy), such as job 5: made way 3.00s ago\n"));
  EXPECT_THAT(text, Not(HasSubstr("job 6")));
}
TEST(Plan, NamesAllOfThemIfAskedTo) {
  EXPECT_THAT(PlanText(PlanThatKeeps(11, 11), kPlain, true), HasSubstr("  keep job 15: made way"));
  EXPECT_THAT(
      PlanText(PlanThatKeeps(2, 30), kPlain, true),
      HasSubstr(
          "  keep job 6: made way 3.00s ago\n  keep 30 jobs in all: cooldown (cooldown of the policy)\n"))
      << "the others were not recorded";
}
TEST(Plan, SaysWhatWouldBeDoneIfAJobStayed) {
  v1::Plan plan = GoodPlan();
  v1::PlanWithout& without = *plan.add_without();
  without.set_job(4);
  without.set_feasible(true);
  without.add_jobs(5);
  without.add_jobs(7);
  without.set_loss_node_seconds(5.2);
  without.set_next_best(true);
  plan.add_without()->set_job(8);
  EXPECT_THAT(PlanText(plan, kPlain),
              HasSubstr("  if job 4 stayed: jobs 5, 7 would go, for 5.2 node-seconds (+2.1), the next best\n"
                        "  if job 8 stayed: not in time\n"));
}
TEST(Plan, SaysIfItMayNotBeTheBest) {
  v1::Plan plan = GoodPlan();
  plan.set_exact(false);
  EXPECT_THAT(PlanText(plan, kPlain), HasSubstr("there may be a better one"));
}
TEST(Plan, ARefusalSaysWhenItWouldWork) {
  v1::Plan plan;
  plan.set_exact(true);
  plan.set_refusal("only 1 of 2 nodes");
  plan.set_earliest_us(5'000'000);
  EXPECT_THAT(
      PlanText(plan, kPlain),
      HasSubstr(
          "refused: only 1 of 2 nodes\n  the earliest start would be 1970-01-01T00:00:05.000Z (in 5.00s)"));
}
TEST(Plan, OneThatWaitsItsTurnIsNotRefused) {
  v1::Plan plan;
  plan.set_exact(true);
  plan.set_queued(true);
  plan.set_refusal("only 1 of 2 nodes");
  EXPECT_EQ(PlanText(plan, kPlain), "queued: only 1 of 2 nodes\n");
}
TEST(Progress, HasBytesRateAndTimeLeft) {
  v1::JobProgress progress;
  progress.set_what("dump");
  progress.set_bytes_done(1 << 30);
  progress.set_bytes_total(int64_t{2} << 30);
  progress.set_bytes_per_second(1 << 29);
  EXPECT_EQ(ProgressText(progress), "dump 1.0 GiB of 2.0 GiB, 512.0 MiB/s, 2.00s left");
}
TEST(Relative, BeforeAndAfterNow) {
  EXPECT_EQ(Relative(5'000'000, FromMicros(1'000'000)), "in 4.00s");
  EXPECT_EQ(Relative(1'000'000, FromMicros(5'000'000)), "4.00s ago");
  EXPECT_EQ(Ago(std::chrono::seconds(1)), "1.00s ago");
  EXPECT_EQ(Ago(-std::chrono::seconds(5)), "now");
  EXPECT_EQ(Relative(1'000'000, FromMicros(1'000'392)), "now");
  EXPECT_EQ(Relative(1'000'000, FromMicros(1'999'999)), "now");
  EXPECT_EQ(Relative(1'000'392, FromMicros(1'000'000)), "now");
  EXPECT_EQ(Relative(1'407'000, FromMicros(1'000'000)), "in 407ms");
  EXPECT_EQ(Relative(0, FromMicros(5)), "-");
}

}  // namespace
}  // namespace siding::cli
