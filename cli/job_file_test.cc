#include "cli/job_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  v1::JobSpec spec;
  return std::string(ParseJobFile(text, "job.yaml", FromMicros(0), spec).message());
}

TEST(JobFile, ReadsEveryField) {
  v1::JobSpec spec;
  const absl::Status status = ParseJobFile(
      "name: heat\nnodes: 2\nslots: 4\nmemory: 2GiB\ngpus: 1\npriority: -5\nmax_preemptions: 3\nworkdir: /w\n"
      "output: /o/%j\nkill_grace: 5s\nnotice: 15s\non_node_failure: park\nfiles: append\nconnections: "
      "keep\ngpu_collectives: "
      "drainable\nallow_io_uring: "
      "true\ncheckpoint_interval: 10m\npreemptible: [suspend, "
      "app]\nenv: {A: b}\n"
      "labels: {qos: low}\nwalltime: 10m\nnot_before: +30s\nstart_by: +60s\napp_signal: "
      "USR1@20s\napp_marker: "
      "/m\ncommand: ./run 'a b'\nrestart_command: [./run, "
      "--resume]\n",
      "job.yaml", FromMicros(1000000), spec);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(spec.nodes(), 2);
  EXPECT_EQ(spec.per_node().memory(), int64_t{2} << 30);
  EXPECT_EQ(spec.start_by_us(), 61000000);
  EXPECT_TRUE(spec.on_demand());
  EXPECT_THAT(spec.methods(), ElementsAre(v1::SUSPEND, v1::APP));
  EXPECT_EQ(spec.app().signal(), 10);
  EXPECT_EQ(spec.app().grace_us(), 20000000);
  EXPECT_THAT(spec.command(), ElementsAre("./run", "a b"));
  EXPECT_EQ(spec.env().at("A"), "b");
  EXPECT_EQ(spec.labels().at("qos"), "low");
  EXPECT_EQ(spec.walltime_us(), 600000000);
  EXPECT_EQ(spec.notice_us(), 15000000);
  EXPECT_TRUE(spec.append_files());
  EXPECT_TRUE(spec.keep_connections());
  EXPECT_EQ(spec.on_node_failure(), v1::PARK);
  EXPECT_EQ(spec.not_before_us(), 31000000);
  EXPECT_EQ(spec.gpu_collectives(), v1::DRAINABLE);
  EXPECT_TRUE(spec.allow_io_uring());
}

TEST(JobFile, TheDeadlineMayBeTheEarliest) {
  v1::JobSpec spec;
  ASSERT_TRUE(ParseJobFile("start_by: earliest\n", "job.yaml", FromMicros(0), spec).ok());
  EXPECT_TRUE(spec.on_demand());
  EXPECT_TRUE(spec.start_by_earliest());
}

TEST(JobFile, NamesFileLineFieldAndWhatWasExpected) {
  EXPECT_THAT(ErrorOf("name: x\nnodes: many\n"),
              HasSubstr("job.yaml:2: nodes: expected a whole number from 1 to"));
}
TEST(JobFile, UnknownFieldsAreErrors) {
  EXPECT_THAT(ErrorOf("\nnode: 2\n"), HasSubstr("job.yaml:2: unknown key 'node'"));
}
TEST(JobFile, UnknownMethodsAreErrors) {
  EXPECT_THAT(ErrorOf("preemptible: [stop]"),
              HasSubstr("job.yaml:1: preemptible: expected suspend, checkpoint, app or kill"));
}
TEST(JobFile, UnknownCollectivesAreErrors) {
  EXPECT_THAT(ErrorOf("gpu_collectives: fast"), HasSubstr("expected drainable or as-is"));
}
TEST(JobFile, AnEmptyValueIsNoValue) {
  EXPECT_THAT(ErrorOf("output: ''"), HasSubstr("job.yaml:1: output: expected a value"));
  EXPECT_THAT(ErrorOf("preemptible: ''"), HasSubstr("job.yaml:1: preemptible: expected "));
}
TEST(JobFile, HoldIsTheOldNameOfWalltime) {
  v1::JobSpec spec;
  std::vector<std::string> notes;
  ASSERT_TRUE(ParseJobFile("walltime: 5m\n", "job.yaml", FromMicros(0), spec, &notes).ok());
  EXPECT_EQ(spec.walltime_us(), 300000000);
  EXPECT_THAT(notes, testing::IsEmpty());
  ASSERT_TRUE(ParseJobFile("hold: 6m\n", "job.yaml", FromMicros(0), spec, &notes).ok());
  EXPECT_EQ(spec.walltime_us(), 360000000);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("job.yaml: hold: is now called walltime")));
  EXPECT_THAT(ErrorOf("walltime: 0s\n"), HasSubstr("job.yaml: walltime: expected 1s or more"));
  EXPECT_THAT(ErrorOf("hold: 5m\nwalltime: 5m\n"), HasSubstr("job.yaml: hold: expected walltime alone"));
}
TEST(JobFile, OneMethodNeedsNoList) {
  v1::JobSpec spec;
  ASSERT_TRUE(ParseJobFile("preemptible: kill\n", "job.yaml", FromMicros(0), spec).ok());
  EXPECT_THAT(spec.methods(), ElementsAre(v1::KILL));
}
TEST(JobFile, FalseIsNotPreemptible) {
  v1::JobSpec spec;
  spec.add_methods(v1::KILL);
  ASSERT_TRUE(ParseJobFile("preemptible: false\n", "job.yaml", FromMicros(0), spec).ok());
  EXPECT_EQ(spec.methods_size(), 0);
}
TEST(JobFile, AFieldIsGivenOnce) {
  EXPECT_THAT(ErrorOf("nodes: 1\nnodes: 2\n"), HasSubstr("job.yaml:2: nodes: is given twice"));
}
TEST(JobFile, AFileIsOneJob) {
  EXPECT_THAT(ErrorOf("nodes: 1\n---\nnodes: 2\n"), HasSubstr("second document"));
}
TEST(JobFile, BrokenYamlHasALine) { EXPECT_THAT(ErrorOf("a: b\nc: [\n"), HasSubstr("job.yaml:")); }
TEST(JobFile, AListIsNoJob) { EXPECT_THAT(ErrorOf("- a\n"), HasSubstr("expected key: value pairs")); }

TEST(Signal, KnowsNamesAndNumbers) {
  EXPECT_EQ(*ParseSignal("USR1"), 10);
  EXPECT_EQ(*ParseSignal("SIGTERM"), 15);
  EXPECT_EQ(*ParseSignal("12"), 12);
  EXPECT_FALSE(ParseSignal("NOPE").ok());
  EXPECT_FALSE(ParseSignal("0").ok());
}
TEST(SplitCommand, WantsItsQuotesClosed) { EXPECT_FALSE(SplitCommand("a 'b").ok()); }

}  // namespace
}  // namespace siding::cli
