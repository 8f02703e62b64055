#include "cli/doctor/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/doctor/finding_matchers.h"
#include "cli/doctor/healthy_fixture.h"
#include "gtest/gtest.h"

namespace siding::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

const Finding kFault{Severity::kFault, "node n1", "it burns", "put it out"};
const Finding kWarning{Severity::kWarning, "job 7", "it smells", "air it"};

TEST(Examine, AHealthyClusterHasNothingToMend) { EXPECT_THAT(Examine(HealthyAnswers()), IsEmpty()); }

v1::Node& NodeOf(Answers& answers) { return *answers.nodes.mutable_nodes(0); }
void Park(Answers& answers, v1::Back::Kind kind) {
  answers.jobs.mutable_jobs(0)->set_state("parked");
  answers.jobs.mutable_jobs(0)->mutable_back()->mutable_because()->set_kind(kind);
}
void ProtectManyNodes(Answers& answers) {
  for (int i = 0; i < 8; ++i) AddHealthyNode(answers, absl::StrCat("m", i));
  answers.policy.set_yaml("most_lost_work: 10m\n");
}
void KeepImagesInMemoryAlone(Answers& answers) {
  for (v1::Node& node : *answers.nodes.mutable_nodes()) {
    node.set_local_in_memory(true);
    node.set_shared_disk_free(0);
    node.clear_shared();
  }
}
void DamageACheckpoint(Answers& answers) {
  v1::CheckpointInfo& checkpoint = *answers.checkpoints.add_checkpoints();
  checkpoint.set_job(1);
  checkpoint.set_state("damaged");
}

struct Breakage {
  void (*breaks)(Answers& answers);
  const char* problem;  // which one check alone finds
};
constexpr Breakage kBreakages[] = {
    {[](Answers& a) { a.away["head2"] = "x"; }, "would not take over"},
    {[](Answers& a) { a.policy.set_problem("x"); }, "its file has an error"},
    {[](Answers& a) { a.site.set_now_us(2 * kTestNow); }, "the clock of this machine"},
    {[](Answers& a) { a.nodes.clear_nodes(); }, "it knows no node"},
    {[](Answers& a) { NodeOf(a).set_state("down"); }, "is not connected"},
    {[](Answers& a) { AddJobOn(a, 2, "n9"); }, "has not dialled"},
    {[](Answers& a) { NodeOf(a).set_fault("x"); }, "no job can start there"},
    {[](Answers& a) { NodeOf(a).set_state("cordoned"); }, "it is cordoned"},
    {[](Answers& a) { NodeOf(a).set_criu_problem("x"); }, "neither checkpointed nor restored"},
    {[](Answers& a) { NodeOf(a).set_criu("4.2.1, without connections to elsewhere"); }, "cannot hold back"},
    {[](Answers& a) { NodeOf(a).set_criu("3.17"); }, "it has criu 3.17"},
    {[](Answers& a) { NodeOf(a).set_gpu_problem("x"); }, "off its GPUs"},
    {[](Answers& a) { NodeOf(a).set_fence_problem("x"); }, "not kept to their memory"},
    {[](Answers& a) { NodeOf(a).set_certificate_ends_us(kTestNow); }, "the certificate of its agent"},
    {[](Answers& a) { NodeOf(a).add_strays("7.1.0"); }, "the journal does not know"},
    {[](Answers& a) { NodeOf(a).set_local_disk_free(0); }, "its local tier has nothing free"},
    {[](Answers& a) { NodeOf(a).set_local_disk_free(1); }, "less than the 1.0 GiB that job 1"},
    {[](Answers& a) { NodeOf(a).clear_local(); }, "its local tier is not measured"},
    {[](Answers& a) { SetTestSpeed(*NodeOf(a).mutable_local(), 1e6); }, "its local tier writes"},
    {KeepImagesInMemoryAlone, "its local tier is in memory"},
    {ProtectManyNodes, "from 11 nodes together"},
    {[](Answers& a) { Park(a, v1::Back::RETRY); }, "it cannot be restored"},
    {[](Answers& a) { Park(a, v1::Back::DECISION); }, "until somebody says"},
    {[](Answers& a) { Park(a, v1::Back::TASKS_LEFT); }, "seen to be gone"},
    {DamageACheckpoint, "it is not what was written"}};

TEST(Examine, EveryCheckIsMade) {
  for (const Breakage& breakage : kBreakages) {
    Answers answers = HealthyAnswers();
    breakage.breaks(answers);
    EXPECT_THAT(Examine(answers), Contains(Field(&Finding::problem, HasSubstr(breakage.problem))));
  }
}

TEST(Examine, FaultsComeBeforeWarnings) {
  Answers answers = HealthyAnswers();
  answers.nodes.mutable_nodes(0)->set_state("cordoned");
  answers.nodes.mutable_nodes(1)->set_local_disk_free(0);
  EXPECT_THAT(Examine(answers),
              ElementsAre(IsFaultOf("node n2", "", ""), IsWarningOf("node n1", "cordoned", "")));
}

TEST(NotLookedAt, AnOperatorSeesAll) { EXPECT_EQ(NotLookedAt(HealthyAnswers()), ""); }
TEST(NotLookedAt, AUserSeesHisOwnJobs) {
  Answers answers = HealthyAnswers();
  answers.site.set_is_operator(false);
  EXPECT_THAT(NotLookedAt(answers), HasSubstr("only your own jobs"));
  answers.site.clear_user();
  EXPECT_THAT(NotLookedAt(answers), HasSubstr("does not know you"));
}

TEST(FindingsText, SaysWhenThereIsNothing) { EXPECT_EQ(FindingsText({}), "nothing to mend\n"); }
TEST(FindingsText, HasAMendBelowEachProblem) {
  EXPECT_EQ(FindingsText({kFault, kWarning}),
            "faults:\n  node n1: it burns\n    put it out\nwarnings:\n  job 7: it smells\n    air it\n");
}
TEST(FindingsText, TheSameOfSeveralIsOneLine) {
  Finding other = kFault;
  other.about = "node n2";
  EXPECT_EQ(
      FindingsText({kFault, kWarning, other}),
      "faults:\n  node n1, node n2: it burns\n    put it out\nwarnings:\n  job 7: it smells\n    air it\n");
}
TEST(FindingsText, OfManyTheFirstAreNamed) {
  Findings findings;
  for (int i = 1; i <= 10; ++i)
    findings.push_back({Severity::kFault, absl::StrCat("node n", i), "it burns", "x"});
  EXPECT_THAT(FindingsText(findings), HasSubstr("node n7, node n8 and 2 more: it burns"));
}
TEST(FindingsText, ManyNodesThatAreDownAreOneLine) {
  Answers answers = HealthyAnswers();
  for (int i = 4; i <= 40; ++i) AddHealthyNode(answers, absl::StrCat("n", i));
  int64_t heard = kTestNow;
  for (v1::Node& node : *answers.nodes.mutable_nodes()) {
    node.set_state("down");
    node.set_last_heard_us(heard -= 1'000'000);
  }
  const std::string text = FindingsText(Examine(answers));
  EXPECT_THAT(text, HasSubstr("n8 and 32 more: its agent is not connected\n"));
  EXPECT_THAT(text, HasSubstr("`sidingctl lost NODE`"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}
TEST(FindingsText, DoesNothingElseToATerminal) {
  EXPECT_THAT(FindingsText({{Severity::kFault, "job 7", "a\033[2J\nb", "c"}}), HasSubstr("a\\x1b[2J\\nb"));
}

TEST(FindingsJson, IsAnArrayOfObjects) {
  EXPECT_EQ(FindingsJson({}), "[]\n");
  EXPECT_EQ(nlohmann::json::parse(FindingsJson({kFault, kWarning})), nlohmann::json::parse(R"([
    {"severity": "fault", "about": "node n1", "problem": "it burns", "mend": "put it out"},
    {"severity": "warning", "about": "job 7", "problem": "it smells", "mend": "air it"}])"));
}

TEST(FindingsJson, SaysOfEachWhenAndWhichNode) {
  const auto json = nlohmann::json::parse(
      FindingsJson({{Severity::kFault, "node n1", "it burns", "wet NODE", ", for 3s"}, kFault}));
  EXPECT_EQ(json[0]["problem"], "it burns, for 3s");
  EXPECT_EQ(json[0]["mend"], "wet n1");
}
TEST(FindingsJson, TakesOddBytes) {
  const auto json = nlohmann::json::parse(FindingsJson({{Severity::kFault, "job 7", "a\xff", "c"}}));
  EXPECT_EQ(json[0]["problem"], "a\xef\xbf\xbd");
}

TEST(ExitCode, SaysTheWorst) {
  EXPECT_EQ(ExitCodeOf(Findings{}), 0);
  EXPECT_EQ(ExitCodeOf({kWarning}), 1);
  EXPECT_EQ(ExitCodeOf({kWarning, kFault}), 2);
}

}  // namespace
}  // namespace siding::cli
