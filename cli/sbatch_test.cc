#include "cli/sbatch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::JobSpec Job(const std::vector<std::string>& command = {"./steer"}, int nodes = 1) {
  v1::JobSpec job;
  job.set_name("steer");
  job.set_nodes(nodes);
  job.mutable_per_node()->set_slots(2);
  job.mutable_command()->Assign(command.begin(), command.end());
  job.set_workdir("/w");
  job.set_output("/w/out-%j-%r");
  return job;
}

std::vector<std::string> Words(const v1::JobSpec& job) {
  const auto words = SbatchCommand(job);
  EXPECT_TRUE(words.ok()) << words.status();
  return words.value_or(std::vector<std::string>());
}

std::string Script(const v1::JobSpec& job) {
  const std::vector<std::string> words = Words(job);
  return words.empty() ? "" : words.back();
}

std::string Refusal(const v1::JobSpec& job) { return std::string(SbatchCommand(job).status().message()); }

TEST(Sbatch, AJobOfOneNode) {
  EXPECT_THAT(Words(Job()),
              ElementsAre("sbatch", "--parsable", "--job-name=steer", "--nodes=1", "--ntasks-per-node=1",
                          "--cpus-per-task=2", "--chdir=/w", "--open-mode=append", "--output=/w/out-%j-0",
                          "--wrap=exec env SIDING_JOB_ID=\"$SLURM_JOB_ID\" SIDING_RANK=0 SIDING_NODES=1 "
                          "./steer"));
}

TEST(Sbatch, SeveralNodesHaveATaskEach) {
  EXPECT_THAT(Words(Job({"./steer"}, 3)), AllOf(Contains("--nodes=3"), Contains("--output=/w/out-%j-srun")));
  EXPECT_EQ(
      Script(Job({"./steer"}, 3)),
      "--wrap=exec srun --cpus-per-task=2 --open-mode=append --output=/w/out-%j-%t sh -c 'exec env "
      "SIDING_JOB_ID=\"$SLURM_JOB_ID\" SIDING_RANK=\"$SLURM_PROCID\" SIDING_NODES=3 \"$@\"' sh ./steer");
}

TEST(Sbatch, OneOutputForAllRanksIsTheScripts) {
  v1::JobSpec job = Job({"./steer"}, 3);
  job.set_output("/w/all");
  EXPECT_THAT(Words(job), Contains("--output=/w/all"));
  EXPECT_THAT(Script(job), Not(HasSubstr("--output")));
}

TEST(Sbatch, MemoryIsRoundedUp) {
  v1::JobSpec job = Job();
  job.mutable_per_node()->set_memory(1025);
  EXPECT_THAT(Words(job), Contains("--mem=2K"));
}

TEST(Sbatch, Gpus) {
  v1::JobSpec job = Job();
  job.mutable_per_node()->set_gpus(4);
  EXPECT_THAT(Words(job), Contains("--gpus-per-node=4"));
}

TEST(Sbatch, WordsOfTheCommandStayWords) {
  EXPECT_THAT(Script(Job({"echo", "a b", "it's", "$HOME", "", "*", "x=1"})),
              HasSubstr(R"( echo 'a b' 'it'\''s' '$HOME' '' '*' x=1)"));
}

TEST(Sbatch, TheEnvironmentIsTheTasks) {
  v1::JobSpec job = Job();
  (*job.mutable_env())["B"] = "x,y z";
  (*job.mutable_env())["A"] = "1";
  EXPECT_THAT(Script(job), HasSubstr(" A=1 'B=x,y z' ./steer"));
  job.set_nodes(2);
  EXPECT_THAT(Script(job), HasSubstr(" sh A=1 'B=x,y z' ./steer"));
}

TEST(Sbatch, PercentSignsThatMeanNothingToSidingMeanNothingToSlurm) {
  v1::JobSpec job = Job();
  job.set_output("/w/100%%-%x-%j-%");
  EXPECT_THAT(Words(job), Contains("--output=/w/100%%-%%x-%j-%%"));
}

TEST(Sbatch, LabelsOfSlurmsAreItsOptions) {
  v1::JobSpec job = Job();
  (*job.mutable_labels())["qos"] = "high";
  (*job.mutable_labels())["account"] = "physics";
  EXPECT_THAT(Words(job), AllOf(Contains("--account=physics"), Contains("--qos=high")));
}

TEST(Sbatch, ADeadline) {
  v1::JobSpec job = Job();
  job.set_on_demand(true);
  job.set_start_by_us(2208988800'250000);
  EXPECT_THAT(Words(job), Contains("--siding-start-by=2040-01-01T00:00:00.250Z"));
}

TEST(Sbatch, TheEarliestDeadlineIsNotSlurms) {
  v1::JobSpec job = Job();
  job.set_on_demand(true);
  job.set_start_by_earliest(true);
  EXPECT_FALSE(SbatchCommand(job).ok());
}

TEST(Sbatch, TimesAreRoundedUp) {
  v1::JobSpec job = Job();
  job.set_walltime_us(61'000'000);
  job.set_not_before_us(1700000000'000001);
  EXPECT_THAT(Words(job), AllOf(Contains("--time=2"), Contains("--begin=uts1700000001")));
}

TEST(Sbatch, HowItMayBePreempted) {
  v1::JobSpec job = Job();
  for (const v1::Method method : {v1::SUSPEND, v1::CHECKPOINT, v1::APP}) job.add_methods(method);
  job.mutable_app()->set_signal(10);
  job.mutable_app()->set_grace_us(1'500'000);
  job.set_checkpoint_interval_us(1'800'000'000);
  job.set_notice_us(10'000'000);
  job.set_append_files(true);
  job.set_max_preemptions(0);
  const std::vector<std::string> words = Words(job);
  const std::vector<std::string> last(words.end() - 8, words.end() - 1);
  EXPECT_THAT(last, ElementsAre("--siding-preemptible=suspend,checkpoint,app",
                                "--siding-checkpoint-signal=10@1500000us",
                                "--siding-checkpoint-interval=1800s", "--siding-notice=10s",
                                "--siding-files=append", "--siding-max-preemptions=0", "--requeue"));
}

TEST(Sbatch, WhatFollowsANodesFailureIsSlurmsRequeue) {
  v1::JobSpec job = Job();
  job.set_on_node_failure(v1::REQUEUE);
  EXPECT_THAT(Words(job), Contains("--requeue"));
  job.set_on_node_failure(v1::PARK);
  EXPECT_THAT(Words(job), Contains("--no-requeue"));
  job.add_methods(v1::CHECKPOINT);
  EXPECT_FALSE(SbatchCommand(job).ok());
}

TEST(Sbatch, WhatItsGpuCollectivesAreLikeAndThatItMayUseIoUring) {
  v1::JobSpec job = Job();
  job.add_methods(v1::CHECKPOINT);
  job.set_gpu_collectives(v1::DRAINABLE);
  job.set_allow_io_uring(true);
  EXPECT_THAT(Words(job),
              AllOf(Contains("--siding-gpu-collectives=drainable"), Contains("--siding-allow-io-uring=yes")));
}

TEST(Sbatch, OnSeveralNodesItIsTheTasksThatArePreempted) {
  v1::JobSpec job = Job({"./steer"}, 2);
  job.add_methods(v1::CHECKPOINT);
  EXPECT_THAT(Words(job), AllOf(Contains("--requeue"), Not(Contains(StartsWith("--siding")))));
  EXPECT_THAT(Script(job), HasSubstr(" --siding-preemptible=checkpoint sh -c "));
}

TEST(Sbatch, ConnectionsAreKeptOfWhatSrunStarts) {
  v1::JobSpec job = Job({"./solver"}, 1);
  job.set_keep_connections(true);
  job.add_methods(v1::CHECKPOINT);
  EXPECT_THAT(Words(job), Not(Contains(StartsWith("--siding"))));
  EXPECT_THAT(Script(job), HasSubstr("srun --cpus-per-task="));
  EXPECT_THAT(Script(job), HasSubstr(" --siding-preemptible=checkpoint --siding-connections=keep sh -c "));
}

TEST(Sbatch, WhatHasNoCounterpartIsNamed) {
  const auto refusal = [](void (*change)(v1::JobSpec&)) {
    v1::JobSpec job = Job();
    change(job);
    return Refusal(job);
  };
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.set_priority(1); }), StartsWith("priority: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.set_kill_grace_us(0); }), StartsWith("kill_grace: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.set_auto_checkpoint_interval(true); }),
              StartsWith("checkpoint_interval: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.mutable_app()->set_marker("m"); }),
              StartsWith("app_marker: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.mutable_app()->add_restart_command("x"); }),
              StartsWith("restart_command: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { (*job.mutable_labels())["team"] = "x"; }),
              StartsWith("label team: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.set_output("/w/a\\b"); }), StartsWith("output: "));
  EXPECT_THAT(refusal([](v1::JobSpec& job) { job.set_keep_connections(true); }), StartsWith("connections: "));
}

}  // namespace
}  // namespace siding::cli
