#include "agent/slurm/registration.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using spank::Registration;

// What plugin and shim write, the agent reads.
absl::StatusOr<Registration> Travel(const Registration& registration) {
  char text[spank::kMaxMessage];
  const std::string first(text, spank::FormatRegistration(registration, text, sizeof text));
  SIDING_ASSIGN_OR_RETURN(
      const Registered registered,
      ParseRegistration(absl::StrCat(first, spank::kRestarts, " ", registration.restarts, "\n")));
  return registered.task;
}

std::string Text(const std::string& more = "") {
  return "siding-register 1\njob 42\nstep batch\ntask 0\ntasks 1\nuid 1\ngid 2\nrestarts 0\n" + more;
}

Registration Step(int step, uint32_t task, uint32_t tasks) {
  Registration r;
  r.job = 42;
  r.step = step;
  r.task = task;
  r.tasks = tasks;
  return r;
}

ImageKey Image(const std::string& checkpoint, int rank) { return {CheckpointId(checkpoint), rank}; }

TEST(ParseRegistration, ReadsWhatThePluginWrites) {
  Registration r = Step(3, 4, 5);
  r.uid = std::numeric_limits<uint32_t>::max();
  r.gid = 7;
  r.restarts = 8;
  r.options.methods = spank::kCheckpoint | spank::kApp;
  r.options.checkpoint_interval_us = 9;
  r.options.checkpoint_signal = 10;
  r.options.signal_grace_us = 11;
  r.options.notice_us = 12;
  r.options.gpu_collectives = spank::Collectives::kAsIs;
  r.options.allow_io_uring = true;
  r.options.max_preemptions = 0;
  r.options.append_files = true;
  r.options.keep_connections = true;
  const auto read = Travel(r);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job, 42u);
  EXPECT_EQ(read->step, 3);
  EXPECT_EQ(read->task, 4u);
  EXPECT_EQ(read->tasks, 5u);
  EXPECT_EQ(read->uid, r.uid);
  EXPECT_EQ(read->gid, 7u);
  EXPECT_EQ(read->restarts, 8u);
  EXPECT_TRUE(read->options.preemptible);
  EXPECT_EQ(read->options.methods, r.options.methods);
  EXPECT_EQ(read->options.checkpoint_interval_us, 9);
  EXPECT_EQ(read->options.checkpoint_signal, 10);
  EXPECT_EQ(read->options.signal_grace_us, 11);
  EXPECT_EQ(read->options.notice_us, 12);
  EXPECT_EQ(read->options.gpu_collectives, spank::Collectives::kAsIs);
  EXPECT_TRUE(read->options.allow_io_uring);
  EXPECT_EQ(read->options.max_preemptions, 0);
  EXPECT_TRUE(read->options.append_files);
  EXPECT_TRUE(read->options.keep_connections);
}

TEST(ParseRegistration, WhatWasNotAskedStaysOpen) {
  const auto read = Travel({});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step, spank::kBatchStep);
  EXPECT_EQ(read->options.methods, 0u);
  EXPECT_EQ(read->options.max_preemptions, -1);
}

TEST(ParseRegistration, LinesOfALaterPluginAreSkipped) {
  EXPECT_TRUE(ParseRegistration(Text("colour blue\n")).ok());
}

TEST(ParseRegistration, AScriptHasTheJobsGpus) {
  const auto read = ParseRegistration(Text("job-gpus 0,1\nstep-gpus 1\ngpu-devices 4,5\n"));
  EXPECT_EQ(read->gpus.list, "0,1");
  EXPECT_EQ(read->gpus.devices, "4,5");
}

TEST(ParseRegistration, ATaskOfAStepHasTheStepsGpusOnly) {
  const std::string step = "siding-register 1\njob 42\nstep 0\ntask 0\ntasks 1\nuid 1\ngid 2\nrestarts 0\n";
  EXPECT_EQ(ParseRegistration(step + "job-gpus 0,1\nstep-gpus 1\n")->gpus.list, "1");
  EXPECT_EQ(ParseRegistration(step + "job-gpus 0,1\n")->gpus.list, "");
}

TEST(ParseRegistration, AnotherVersionIsToldApart) {
  EXPECT_TRUE(absl::IsUnimplemented(ParseRegistration("siding-register 2\n").status()));
}

TEST(ParseRegistration, ErrorsNameTheLine) {
  const struct {
    std::string text, named;
  } cases[] = {{"", "siding-register 1"},
               {"hello\n", "'hello'"},
               {"siding-register 1\n", "'job'"},
               {Text("job 43\n"), "'job' twice"},
               {Text("notice-us soon\n"), "notice-us soon"},
               {Text("notice-us -1\n"), "notice-us -1"},
               {Text("checkpoint-signal 65\n"), "from 0 to 64"},
               {Text("methods fly\n"), "'methods'"},
               {Text("cut of"), "newline"}};
  for (const auto& [text, named] : cases) {
    const auto read = ParseRegistration(text);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << text;
    EXPECT_NE(std::string(read.status().message()).find(named), std::string::npos) << read.status();
  }
}

// A user can say what he likes in SLURM_RESTART_COUNT, and the controller does not hear an agent that says
// more.
TEST(ParseRegistration, NumbersThatTheControllerWouldNotTakeAreRefused) {
  const auto restarts = [](int64_t number) {
    return ParseRegistration(absl::StrCat(
        "siding-register 1\njob 42\nstep batch\ntask 0\ntasks 1\nuid 1\ngid 2\nrestarts ", number, "\n"));
  };
  EXPECT_TRUE(restarts(kMostIncarnations - 1).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(restarts(kMostIncarnations).status()));
  const auto tasks = [](int64_t number) {
    return ParseRegistration(absl::StrCat("siding-register 1\njob 42\nstep 0\ntask 0\ntasks ", number,
                                          "\nuid 1\ngid 2\nrestarts 0\n"));
  };
  EXPECT_TRUE(tasks(kMostTasks).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(tasks(kMostTasks + 1).status()));
}

TEST(RankOf, ScriptAndStepsAreApart) {
  EXPECT_EQ(*RankOf(Step(spank::kBatchStep, 0, 1)), 0);
  EXPECT_EQ(*RankOf(Step(0, 0, 1)), 65536);
  EXPECT_EQ(*RankOf(Step(0, 65535, 1)), 131071);
  EXPECT_EQ(*RankOf(Step(1, 0, 1)), 131072);
}

TEST(RankOf, WhatDoesNotFitIsRefused) {
  EXPECT_TRUE(RankOf(Step(32766, 65535, 1)).ok());
  EXPECT_FALSE(RankOf(Step(32767, 0, 1)).ok());
  EXPECT_FALSE(RankOf(Step(0, 65536, 1)).ok());
}

TEST(LastWhole, TheHighestNumberCounts) {
  const std::vector<ImageKey> images = {Image("slurm-42.9", 0), Image("slurm-42.10", 0),
                                        Image("slurm-42.2", 0)};
  EXPECT_EQ(LastWhole(images, Step(spank::kBatchStep, 0, 1)), CheckpointId("slurm-42.10"));
}

TEST(LastWhole, OtherJobsAndStepsDoNotCount) {
  const std::vector<ImageKey> images = {Image("slurm-4.1", 0), Image("slurm-421.1", 0), Image("42.1", 0),
                                        Image("slurm-42.x", 0), Image("slurm-42.1", 65536)};
  EXPECT_EQ(LastWhole(images, Step(spank::kBatchStep, 0, 1)), std::nullopt);
}

TEST(LastWhole, AStepNeedsAllItsTasks) {
  const std::vector<ImageKey> images = {Image("slurm-42.1", 65536), Image("slurm-42.1", 65537),
                                        Image("slurm-42.2", 65536)};
  EXPECT_EQ(LastWhole(images, Step(0, 0, 2)), CheckpointId("slurm-42.1"));
  EXPECT_EQ(LastWhole(images, Step(0, 1, 3)), std::nullopt);
}

TEST(ChooseCheckpoint, TheLaterOfTheTiersCounts) {
  const auto batch = Step(spank::kBatchStep, 0, 1);
  const auto found = ChooseCheckpoint({Image("slurm-42.2", 0)}, {Image("slurm-42.1", 0)}, batch);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tier, v1::LOCAL);
  EXPECT_EQ(ChooseCheckpoint({Image("slurm-42.1", 0)}, {Image("slurm-42.1", 0)}, batch)->tier, v1::SHARED);
  EXPECT_FALSE(ChooseCheckpoint({}, {}, batch));
}

TEST(ChooseCheckpoint, ANodesOwnTierCannotTellOfTheOtherTasks) {
  EXPECT_FALSE(ChooseCheckpoint({Image("slurm-42.1", 65536), Image("slurm-42.1", 65537)}, {}, Step(0, 0, 2)));
}

TEST(StartOf, EveryRequeueIsAnIncarnation) {
  Registration r = Step(spank::kBatchStep, 0, 1);
  r.uid = 1000;
  r.restarts = 2;
  const auto start = StartOf(r, {});
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->op(), 3'000'000);
  EXPECT_EQ(start->task().incarnation(), 3);
  ASSERT_TRUE(start->has_launch());
  EXPECT_EQ(start->launch().spec().uid(), 1000u);
}

TEST(StartOf, ATaskSaysWithHowManyItBelongsTogether) {
  const auto start = StartOf(Step(0, 1, 3), {});
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->launch().spec().nodes(), 3);
}

TEST(StartOf, ATaskSaysHowMuchNoticeItWants) {
  spank::Registration r = Step(0, 0, 1);
  r.options.notice_us = 12;
  EXPECT_EQ(StartOf(r, {})->launch().spec().notice_us(), 12);
}

TEST(StartOf, ATaskSaysWhatItsGpuCollectivesAreLikeAndWhetherItMayUseIoUring) {
  spank::Registration r = Step(0, 0, 1);
  EXPECT_EQ(StartOf(r, {})->launch().spec().gpu_collectives(), v1::GPU_COLLECTIVES_UNSPECIFIED);
  r.options.gpu_collectives = spank::Collectives::kDrainable;
  r.options.allow_io_uring = true;
  EXPECT_EQ(StartOf(r, {})->launch().spec().gpu_collectives(), v1::DRAINABLE);
  EXPECT_TRUE(StartOf(r, {})->launch().spec().allow_io_uring());
}

TEST(StartOf, FromACheckpointItIsARestore) {
  const auto start =
      StartOf(Step(spank::kBatchStep, 0, 1), FoundCheckpoint{CheckpointId("slurm-42.1"), v1::SHARED});
  ASSERT_TRUE(start.ok());
  EXPECT_EQ(start->restore().checkpoint(), "slurm-42.1");
  EXPECT_EQ(start->restore().tier(), v1::SHARED);
}

TEST(Answers, AreReadByThePlugin) {
  const auto parse = [](const std::string& text, spank::Answer& answer) {
    return spank::ParseAnswer(text.data(), text.size(), answer);
  };
  spank::Answer answer;
  ASSERT_TRUE(parse(AcceptedText("/f"), answer));
  EXPECT_STREQ(answer.folder, "/f");
  ASSERT_TRUE(parse(RefusedText(absl::InternalError("two\nlines")), answer));
  EXPECT_STREQ(answer.reason, "two lines");
  ASSERT_TRUE(parse(OrdersText(absl::OkStatus()), answer));
  EXPECT_EQ(answer.kind, spank::AnswerKind::kGo);
  ASSERT_TRUE(parse(OrdersText(absl::InternalError(std::string(5000, 'x'))), answer));
  EXPECT_EQ(answer.kind, spank::AnswerKind::kFailed);
}

}  // namespace
}  // namespace siding
