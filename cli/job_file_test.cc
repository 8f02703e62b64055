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
      "output: /o/%j\nkill_grace: 5s\ncheckpoint_interval: 10m\npreemptible: [suspend, app]\nenv: {A: b}\n"
      "start_by: +60s\napp_signal: USR1@20s\napp_marker: /m\ncommand: ./run 'a b'\nrestart_command: [./run, "
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
}

TEST(JobFile, NamesFileLineFieldAndWhatWasExpected) {
  EXPECT_THAT(ErrorOf("name: x\nnodes: many\n"),
              HasSubstr("job.yaml:2: nodes: expected a whole number, 1 or more"));
}
TEST(JobFile, UnknownFieldsAreErrors) {
  EXPECT_THAT(ErrorOf("\nnode: 2\n"), HasSubstr("job.yaml:2: unknown field 'node'"));
}
TEST(JobFile, UnknownMethodsAreErrors) {
  EXPECT_THAT(ErrorOf("preemptible: [stop]"), HasSubstr("'stop': expected suspend"));
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
