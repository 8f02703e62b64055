// sidingctl against a service that records what it is asked: what the verbs send, print and exit with.
#include "cli/program.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program_fixture.h"
#include "common/clock.h"
#include "common/tls/authority.h"
#include "gmock/gmock.h"

namespace siding::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ProgramTest, SubmitSendsTheCommandAndDefaults) {
  EXPECT_EQ(Run({"submit", "--", "./heat", "-n", "5"}), 0);
  EXPECT_THAT(service_.submitted.command(), ElementsAre("./heat", "-n", "5"));
  EXPECT_EQ(service_.submitted.name(), "heat");
  EXPECT_EQ(service_.submitted.nodes(), 1);
  EXPECT_THAT(service_.submitted.methods(), ElementsAre(v1::SUSPEND, v1::CHECKPOINT, v1::KILL));
  EXPECT_EQ(out_, "job 7\n");
}

TEST_F(ProgramTest, StartByMakesItOnDemand) {
  EXPECT_EQ(Run({"submit", "--start-by", "2040-01-01T00:00:00Z", "--walltime", "20m", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.on_demand());
  EXPECT_EQ(service_.submitted.start_by_us(), int64_t{2208988800} * 1'000'000);
  EXPECT_EQ(service_.submitted.walltime_us(), 1'200'000'000);
  EXPECT_THAT(service_.submitted.methods(), IsEmpty());
}

TEST_F(ProgramTest, FlagsOverrideTheJobFile) {
  const std::string file = folder_ + "/job.yaml";
  std::ofstream(file) << "name: from-file\nnodes: 3\ncommand: [./x]\n";
  EXPECT_EQ(Run({"submit", "--file", file.c_str(), "--nodes", "2"}), 0);
  EXPECT_EQ(service_.submitted.name(), "from-file");
  EXPECT_EQ(service_.submitted.nodes(), 2);
}

TEST_F(ProgramTest, BadValuesAreNamedBeforeAnythingIsSent) {
  EXPECT_EQ(Run({"submit", "--walltime", "soon", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--walltime"));
  EXPECT_TRUE(service_.submitted.command().empty());
}

TEST_F(ProgramTest, WhoAskedForJsonReadsWhatIsRefused) {
  service_.answer = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "request 7 is refused: \"none\"");
  EXPECT_EQ(Run({"--json", "submit", "--start-by", "+60s", "--", "x"}), 1);
  EXPECT_EQ(nlohmann::json::parse(out_), (nlohmann::json{{"status", "failed_precondition"},
                                                         {"reason", "request 7 is refused: \"none\""}}));
  EXPECT_THAT(err_, HasSubstr("request 7 is refused"));
  EXPECT_EQ(Run({"submit", "--start-by", "+60s", "--", "x", "--json"}), 1);  // the program's own
  EXPECT_EQ(out_, "");
}

TEST_F(ProgramTest, AndWhatIsNoCommandLine) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"submit", "--json", "--walltime", "soon", "--", "x"},
                                             {"submit", "--nodes", "x", "--json"},
                                             {"--json", "sumbit"}}) {
    EXPECT_EQ(Run(arguments), 2);
    const auto said = nlohmann::json::parse(out_, nullptr, false);
    ASSERT_TRUE(said.is_object()) << out_;
    EXPECT_EQ(said["status"], "invalid_argument");
    EXPECT_NE(said["reason"], "");
  }
}

TEST_F(ProgramTest, AnOwnCertificateThatIsAboutToExpireIsSaid) {
  const Time now = SystemClock().Now();
  const auto authority = MakeAuthority(std::chrono::hours(24 * 365), now);
  const std::string file = folder_ + "/ada.pem";
  for (const auto& [days, said] : {std::pair{6, true}, std::pair{40, false}}) {
    const auto issued =
        IssueFor({CertificateName::Kind::kUser, "ada"}, *authority, std::chrono::hours(24 * days), now);
    std::ofstream(file) << issued->certificate;
    EXPECT_EQ(Run({"--certificate", file.c_str(), "jobs"}), 0);
    EXPECT_EQ(err_.find("your certificate " + file + " expires in ") != std::string::npos, said) << err_;
  }
}

TEST_F(ProgramTest, JsonSpellsMethodsAsTextDoes) {
  service_.job.add_methods(v1::SUSPEND);
  service_.job.mutable_spec()->add_methods(v1::CHECKPOINT);
  service_.job.mutable_spec()->set_gpu_collectives(v1::AS_IS);
  EXPECT_EQ(Run({"jobs", "--json", "5"}), 0);
  const auto job = nlohmann::json::parse(out_)["jobs"][0];
  EXPECT_EQ(job["id"], "5");
  EXPECT_EQ(job["methods"], nlohmann::json{"suspend"});
  EXPECT_EQ(job["spec"]["methods"], nlohmann::json{"checkpoint"});
  EXPECT_EQ(job["spec"]["gpu_collectives"], "as-is");
  EXPECT_EQ(job["spec"]["on_node_failure"], "");
}

TEST_F(ProgramTest, JsonHasOneNameForTheWalltime) {
  service_.job.mutable_spec()->set_hold_us(9);
  EXPECT_EQ(Run({"jobs", "--json", "5"}), 0);
  const auto spec = nlohmann::json::parse(out_)["jobs"][0]["spec"];
  EXPECT_EQ(spec["walltime_us"], "9");
  EXPECT_FALSE(spec.contains("hold_us"));
}

TEST_F(ProgramTest, AWalltimeIsForEveryJob) {
  EXPECT_EQ(Run({"submit", "--walltime", "20m", "--", "x"}), 0);
  EXPECT_EQ(service_.submitted.walltime_us(), 1'200'000'000);
  EXPECT_EQ(Run({"submit", "--walltime", "0s", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--walltime: expected 1s or more"));
}

TEST_F(ProgramTest, HoldIsTheOldNameOfWalltime) {
  EXPECT_EQ(Run({"submit", "--hold", "20m", "--", "x"}), 0);
  EXPECT_EQ(service_.submitted.walltime_us(), 1'200'000'000);
  EXPECT_EQ(err_, "sidingctl: --hold: is now called --walltime; the next version does not know --hold\n");
  EXPECT_EQ(Run({"submit", "--hold", "20m", "--walltime", "20m", "--", "x"}), 2);

  const std::string file = folder_ + "/job.yaml";
  std::ofstream(file) << "hold: 5m\ncommand: [./x]\n";
  EXPECT_EQ(Run({"submit", "--file", file.c_str()}), 0);
  EXPECT_EQ(service_.submitted.walltime_us(), 300'000'000);
  EXPECT_THAT(err_, AllOf(HasSubstr(file), HasSubstr("hold: is now called walltime")));
}

TEST_F(ProgramTest, AnEmptyValueIsNoValue) {
  for (const std::vector<const char*>& arguments :
       std::vector<std::vector<const char*>>{{"submit", "--output=", "--", "sleep", "3"},
                                             {"submit", "--name=", "--", "sleep", "3"},
                                             {"submit", "--name", "--", "sleep", "3"},
                                             {"submit", "--output=", "sleep", "3"},
                                             {"submit", "--preemptible", "", "--", "sleep", "3"},
                                             {"submit", "--env", "", "--", "sleep", "3"},
                                             {"plan", "--memory", "", "--", "sleep", "3"},
                                             {"vacate", "--tier", "", "3"},
                                             {"migrate", "3", "--to="},
                                             {"cordon", ""}}) {
    EXPECT_EQ(Run(arguments), 2) << arguments[1];
    EXPECT_THAT(err_, HasSubstr("expected a value, got none")) << arguments[1];
  }
  EXPECT_TRUE(service_.submitted.command().empty());
  EXPECT_THAT(service_.asked, IsEmpty());
}

TEST_F(ProgramTest, AProgramsOwnArgumentsMayBeEmpty) {
  EXPECT_EQ(Run({"submit", "--", "x", "", "--y=", "--"}), 0);
  EXPECT_THAT(service_.submitted.command(), ElementsAre("x", "", "--y=", "--"));
}

TEST_F(ProgramTest, ErrorsOfTheParserNameTheVerb) {
  EXPECT_EQ(Run({"submit", "--nodes", "0", "--", "x"}), 2);
  EXPECT_THAT(err_, StartsWith("sidingctl: submit: --nodes: "));
  EXPECT_EQ(Run({"suspend", "--frobnicate", "3"}), 2);
  EXPECT_THAT(err_, StartsWith("sidingctl: suspend: "));
  EXPECT_EQ(Run({"sumbit"}), 2);
  EXPECT_THAT(err_, StartsWith("sidingctl: "));
}

TEST_F(ProgramTest, NumbersOutOfRangeAreRefused) {
  EXPECT_EQ(Run({"submit", "--max-preemptions", "-1", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--max-preemptions: Value -1 not in range 0 to 1000000"));
  EXPECT_EQ(Run({"submit", "--max-preemptions", "0", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.has_max_preemptions());
}

TEST_F(ProgramTest, SeveralJobsAreKilled) {
  EXPECT_EQ(Run({"kill", "--no-wait", "5", "6"}), 0);
  EXPECT_THAT(service_.asked, ElementsAre("kill 5", "kill 6"));
}

TEST_F(ProgramTest, SeveralJobsAreHeldReleasedAndStartedOver) {
  EXPECT_EQ(Run({"hold", "5", "6"}), 0);
  EXPECT_EQ(out_, "job 5 is held\njob 6 is held\n");
  EXPECT_EQ(Run({"release", "5"}), 0);
  EXPECT_EQ(out_, "job 5 is not held any more\n");
  EXPECT_EQ(Run({"restart", "--no-wait", "--running", "5", "6"}), 0);
  EXPECT_THAT(service_.asked,
              ElementsAre("hold 5", "hold 6", "release 5", "restart the running 5", "restart the running 6"));
  EXPECT_EQ(Run({"hold", "--json", "5"}), 0);
  EXPECT_EQ(out_, "{}\n");
}

TEST_F(ProgramTest, UpdateSendsWhatIsToBeChangedOnly) {
  EXPECT_EQ(Run({"update", "5", "--priority", "0"}), 0);
  EXPECT_EQ(out_, "job 5 is updated\n");
  EXPECT_TRUE(service_.updated.has_priority());
  EXPECT_FALSE(service_.updated.has_walltime_us());
  EXPECT_EQ(Run({"update", "5", "6", "--walltime", "20m"}), 0);
  EXPECT_FALSE(service_.updated.has_priority());
  EXPECT_EQ(service_.updated.walltime_us(), 1'200'000'000);
  EXPECT_EQ(Run({"update", "5", "--walltime", "none"}), 0);
  EXPECT_TRUE(service_.updated.has_walltime_us());
  EXPECT_EQ(service_.updated.walltime_us(), 0);
}

TEST_F(ProgramTest, AnUpdateOfNothingOrToNonsenseIsNotSent) {
  EXPECT_EQ(Run({"update", "5"}), 2);
  EXPECT_THAT(err_, HasSubstr("expected --priority or --walltime"));
  EXPECT_EQ(Run({"update", "5", "--walltime", "soon"}), 2);
  EXPECT_THAT(err_, HasSubstr("--walltime: 'soon': expected a duration such as 20m, or none"));
  EXPECT_EQ(Run({"update", "5", "--walltime", "0s"}), 2);
  EXPECT_EQ(Run({"update", "5", "--priority", "high"}), 2);
  EXPECT_THAT(service_.asked, IsEmpty());
}

TEST_F(ProgramTest, AJobThatIsAskedForIsShownWithItsCommand) {
  service_.job.mutable_spec()->add_command("./heat");
  EXPECT_EQ(Run({"jobs", "5"}), 0);
  EXPECT_THAT(out_, HasSubstr("\ncommand of job 5: ./heat\n"));
}

TEST_F(ProgramTest, OneThatCannotBeKilledDoesNotKeepTheOthers) {
  service_.answer = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "it has ended");
  EXPECT_EQ(Run({"kill", "--no-wait", "5", "6"}), 1);
  EXPECT_THAT(service_.asked, ElementsAre("kill 5", "kill 6"));
  EXPECT_THAT(err_, HasSubstr("sidingctl: kill: it has ended"));
}

TEST_F(ProgramTest, ABackupReplacesNothingUnlessItIsForced) {
  const std::string file = folder_ + "/copy.db";
  std::ofstream(file) << "the first";
  EXPECT_EQ(Run({"backup", file.c_str()}), 1);
  EXPECT_THAT(err_, HasSubstr("is there already: --force replaces it"));
  EXPECT_EQ(Run({"backup", "--force", file.c_str()}), 1);
  EXPECT_THAT(err_, Not(HasSubstr("is there already")));
}

TEST_F(ProgramTest, ArgumentsAreText) {
  EXPECT_EQ(Run({"submit", "--name", "caf\xE9", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("argument 5, 'caf\xEF\xBF\xBD': expected text in UTF-8"));
}

TEST_F(ProgramTest, TheCheckpointIntervalMayBeLeftToSiding) {
  EXPECT_EQ(Run({"submit", "--checkpoint-interval", "auto", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.auto_checkpoint_interval());
  EXPECT_FALSE(service_.submitted.append_files());
  EXPECT_EQ(Run({"submit", "--files=append", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.append_files());
  EXPECT_EQ(Run({"submit", "--files=any", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--files: 'any': expected exact or append"));
  EXPECT_FALSE(service_.submitted.keep_connections());
  EXPECT_EQ(Run({"submit", "--connections=keep", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.keep_connections());
  EXPECT_EQ(Run({"submit", "--connections=all", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--connections: 'all': expected keep or as-is"));
  EXPECT_EQ(Run({"submit", "--checkpoint-interval", "often", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--checkpoint-interval: 'often': expected a duration such as 30m, or auto"));
}

TEST_F(ProgramTest, WhatFollowsANodesFailureMayBeSaid) {
  EXPECT_EQ(Run({"submit", "--on-node-failure=requeue", "--", "x"}), 0);
  EXPECT_EQ(service_.submitted.on_node_failure(), v1::REQUEUE);
  EXPECT_EQ(Run({"submit", "--on-node-failure=wait", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--on-node-failure: 'wait': expected requeue or park"));
}

TEST_F(ProgramTest, LabelsNeedAValue) {
  EXPECT_EQ(Run({"submit", "--label", "qos", "--", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("--label 'qos': expected NAME=VALUE"));
}

TEST_F(ProgramTest, RelativeTimesCountByTheControllersClock) {
  service_.now_us = 1'000'000'000;
  EXPECT_EQ(Run({"submit", "--start-by", "+60s", "--", "x"}), 0);
  EXPECT_EQ(service_.submitted.start_by_us(), 1'060'000'000);
}

TEST_F(ProgramTest, TheDeadlineMayBeTheEarliest) {
  EXPECT_EQ(Run({"submit", "--start-by", "earliest", "--", "x"}), 0);
  EXPECT_TRUE(service_.submitted.on_demand());
  EXPECT_TRUE(service_.submitted.start_by_earliest());
}

TEST_F(ProgramTest, ADeadlineThatIsNoneNamesWhatWasExpected) {
  EXPECT_EQ(Run({"submit", "--start-by", "soon", "--", "x"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("--start-by"), HasSubstr("or earliest")));
}

TEST_F(ProgramTest, AnUnknownVerbIsNamedAndTheNearestOne) {
  EXPECT_EQ(Run({"sumbit", "--", "./x"}), 2);
  EXPECT_THAT(err_,
              HasSubstr("sidingctl: unknown verb 'sumbit': expected one of its verbs, such as submit\n"));
  EXPECT_EQ(Run({"frob"}), 2);
  EXPECT_THAT(err_, HasSubstr("sidingctl: unknown verb 'frob': expected one of its verbs\n"));
  EXPECT_EQ(Run({"checkpoints", "1"}), 2);
  EXPECT_THAT(
      err_,
      HasSubstr("sidingctl: checkpoints: unknown verb '1': expected one of list, show, verify, delete\n"));
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(err_, HasSubstr("sidingctl: expected a verb, such as submit or jobs\n"));
}

TEST_F(ProgramTest, PlanThatIsRefusedFails) {
  service_.feasible = false;
  EXPECT_EQ(Run({"plan", "--start-by", "+60s", "--", "x"}), 1);
  EXPECT_THAT(out_, HasSubstr("refused: only 1 of 2 nodes"));
}

TEST_F(ProgramTest, JsonIsTheMessageAsItIs) {
  EXPECT_EQ(Run({"plan", "--json", "--start-by", "+60s", "--", "x"}), 0);
  EXPECT_THAT(out_, HasSubstr("\"feasible\":true"));
}

TEST_F(ProgramTest, VerbsNameTheirJob) {
  EXPECT_EQ(Run({"suspend", "--no-wait", "5"}), 0);
  EXPECT_EQ(Run({"resume", "--no-wait", "6"}), 0);
  EXPECT_EQ(Run({"restart", "--no-wait", "7"}), 0);
  EXPECT_EQ(Run({"vacate", "--no-wait", "--tier", "local", "8"}), 0);
  EXPECT_EQ(Run({"cordon", "n1"}), 0);
  EXPECT_EQ(Run({"lost", "n2"}), 0);
  EXPECT_THAT(service_.asked,
              ElementsAre("suspend 5", "resume 6", "restart 7", "vacate to local 8", "cordon n1", "lose n2"));
}

TEST_F(ProgramTest, WhoSuspendsAJobIsToldOfItsTimers) {
  EXPECT_EQ(Run({"suspend", "--no-wait", "5"}), 0);
  EXPECT_EQ(err_, "");
  service_.job.set_timer("process 12 (timeout) has a POSIX timer on CLOCK_REALTIME");
  EXPECT_EQ(Run({"suspend", "--no-wait", "5"}), 0);
  EXPECT_EQ(err_, "note: job 5: timers run on while it is suspended: " + service_.job.timer() + "\n");
}

TEST_F(ProgramTest, JobsOfAUserInSomeStatesCanBeAskedFor) {
  EXPECT_EQ(Run({"jobs", "--user", "ada", "--state", "running,parked"}), 0);
  EXPECT_EQ(service_.listed.user(), "ada");
  EXPECT_THAT(service_.listed.states(), testing::ElementsAre("running", "parked"));
}

TEST_F(ProgramTest, EventsCanBeAskedForSinceATime) {
  EXPECT_EQ(Run({"events", "--since", "2026-05-01T12:00:00Z"}), 0);
  EXPECT_EQ(service_.followed.since_us(), 1777636800000000);
  EXPECT_EQ(Run({"events", "--since", "+2h"}), 2);
  EXPECT_THAT(err_, HasSubstr("events: --since: '+2h' is not a time"));
}

TEST_F(ProgramTest, WaitExitsWithTheJobsExitCode) {
  service_.job.set_state("failed");
  service_.job.set_exit_code(7);
  EXPECT_EQ(Run({"wait", "5"}), 7);
}

TEST_F(ProgramTest, AJobThatIsNotDoneNeverCountsAsSuccess) {
  for (const int code : {0, 256}) {
    service_.job.set_state("failed");
    service_.job.set_exit_code(code);
    EXPECT_EQ(Run({"wait", "5"}), 1) << code;
    EXPECT_EQ(Run({"submit", "--wait", "--", "x"}), 1) << code;
  }
}

TEST_F(ProgramTest, WaitAsJsonIsTheJobs) {
  service_.job.set_state("done");
  EXPECT_EQ(Run({"wait", "--json", "5", "6"}), 0);
  const auto jobs = nlohmann::json::parse(out_)["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1]["id"], "6");
}

TEST_F(ProgramTest, WhoMovesAJobToANodeIsToldWhenItIsOnAnother) {
  service_.job.add_nodes("n2");
  service_.after_order = service_.job;
  service_.after_order->set_incarnation(2);
  service_.after_order->set_checkpoint("5.1");
  EXPECT_EQ(Run({"migrate", "5", "--to", "n3"}), 1);
  EXPECT_THAT(err_, HasSubstr("job 5 runs on n2, and not on n3"));
}

TEST_F(ProgramTest, AJobThatLeftItsNodesWithoutANewCheckpointIsNotVacated) {
  service_.job.set_checkpoint("5.1");
  service_.after_order = service_.job;
  service_.after_order->set_state("parked");
  service_.after_order->set_reason("rank 1 is lost with its node");
  EXPECT_EQ(Run({"vacate", "5"}), 1);
  EXPECT_THAT(err_, HasSubstr("without a new checkpoint: rank 1 is lost with its node"));
}

TEST_F(ProgramTest, TheServicesWordsReachTheUser) {
  service_.answer = grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "job 5 is bob's");
  EXPECT_EQ(Run({"suspend", "--no-wait", "5"}), 1);
  EXPECT_EQ(err_, "sidingctl: suspend: job 5 is bob's\n");
}

TEST_F(ProgramTest, AControllerThatCannotAtTheMomentIsNotCalledAbsent) {
  service_.answer = grpc::Status(grpc::StatusCode::ABORTED, "the journal cannot be written: disk full");
  EXPECT_EQ(Run({"suspend", "--no-wait", "5"}), 1);
  EXPECT_THAT(err_, HasSubstr("disk full"));
}

TEST_F(ProgramTest, WhatTheControllerFindsMalformedIsAUsageErrorToo) {
  service_.answer = grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "nodes: expected 1 or more");
  EXPECT_EQ(Run({"submit", "--", "x"}), 2);
}

TEST_F(ProgramTest, PolicyShowIsAPolicyFile) {
  service_.policy.set_yaml("margin: 1s\n");
  service_.policy.set_file("/p.yaml");
  EXPECT_EQ(Run({"policy", "show"}), 0);
  EXPECT_THAT(out_, MatchesRegex("# /p.yaml, loaded 1970-01-01T00:00:00.000Z [(].* ago[)]\nmargin: 1s\n"));
}

TEST_F(ProgramTest, PolicyShowSaysWhenThereIsNoFile) {
  EXPECT_EQ(Run({"policy", "show"}), 0);
  EXPECT_THAT(out_, HasSubstr("# the defaults"));
}

TEST_F(ProgramTest, PolicyShowSaysWhyTheFileIsNotInForce) {
  service_.policy.set_problem("/p.yaml:3: margin: expected a duration");
  EXPECT_EQ(Run({"policy", "show"}), 0);
  EXPECT_THAT(out_, HasSubstr("# not in force as it is now: /p.yaml:3: margin: expected a duration\n"));
}

TEST_F(ProgramTest, PolicyShowAsJsonHasValuesOfTheirKind) {
  service_.policy.set_yaml(
      "margin: 1s\nconfidence: 0.95\noperators: [root, \"1001\"]\nclasses: [{strict: true}]\n");
  EXPECT_EQ(Run({"policy", "show", "--json"}), 0);
  EXPECT_EQ(nlohmann::json::parse(out_)["policy"], nlohmann::json::parse(R"({
    "margin": "1s", "confidence": 0.95, "operators": ["root", "1001"], "classes": [{"strict": true}]})"));
}

TEST_F(ProgramTest, PolicyReloadSaysWhatHasChanged) {
  EXPECT_EQ(Run({"policy", "reload"}), 0);
  EXPECT_EQ(out_, "/p.yaml is in force; it changes\n-margin: 1s\n+margin: 2s\nwarning: no user may ask\n");
}

TEST_F(ProgramTest, PolicyReloadThatFailsSaysWhereAndFails) {
  service_.answer =
      grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "the policy was not changed: /p.yaml:3: margin");
  EXPECT_EQ(Run({"policy", "reload"}), 1);
  EXPECT_EQ(err_, "sidingctl: policy: the policy was not changed: /p.yaml:3: margin\n");
}

TEST_F(ProgramTest, ErrorsHaveLinesAndDoNothingElseToATerminal) {
  service_.answer = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "process 7 (\033[2J)\nuses io_uring");
  EXPECT_EQ(Run({"suspend", "5"}), 1);
  EXPECT_EQ(err_, "sidingctl: suspend: process 7 (\\x1b[2J)\nuses io_uring\n");
}

TEST_F(ProgramTest, WithoutAControllerItSaysWhereItLooked) {
  EXPECT_EQ(Run({"suspend", "5"}, folder_ + "/nobody.sock"), 3);
  EXPECT_THAT(err_, HasSubstr("no controller answers on " + folder_ + "/nobody.sock"));
}

// ---- doctor ----

class DoctorTest : public ProgramTest {
 protected:
  DoctorTest() {
    v1::Node& node = *service_.nodes.add_nodes();
    node.set_name("n1");
    node.set_state("up");
  }
  v1::Node& node() { return *service_.nodes.mutable_nodes(0); }
};

TEST_F(DoctorTest, OfAHealthyClusterThereIsNothingToMend) {
  EXPECT_EQ(Run({"doctor"}), 0) << err_;
  EXPECT_EQ(out_, "nothing to mend\n");
  EXPECT_EQ(err_, "");
}

TEST_F(DoctorTest, WarningsAreExitCode1) {
  node().set_state("cordoned");
  EXPECT_EQ(Run({"doctor"}), 1);
  EXPECT_EQ(out_,
            "warnings:\n"
            "  node n1: it is cordoned: nothing new is placed there\n"
            "    when its maintenance is over: `sidingctl uncordon n1`\n");
}

TEST_F(DoctorTest, FaultsAreExitCode2) {
  node().set_state("down");
  EXPECT_EQ(Run({"doctor"}), 2);
  EXPECT_THAT(out_, StartsWith("faults:\n  node n1: its agent is not connected\n"));
}

TEST_F(DoctorTest, AsJsonItIsAnArray) {
  EXPECT_EQ(Run({"doctor", "--json"}), 0);
  EXPECT_EQ(out_, "[]\n");
  node().set_state("down");
  EXPECT_EQ(Run({"doctor", "--json"}), 2);
  const auto findings = nlohmann::json::parse(out_);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0]["severity"], "fault");
  EXPECT_EQ(findings[0]["about"], "node n1");
}

TEST_F(DoctorTest, WhoIsNoOperatorIsToldWhatWasNotLookedAt) {
  service_.is_operator = false;
  EXPECT_EQ(Run({"doctor"}), 0);
  EXPECT_THAT(err_, StartsWith("note: "));
}

TEST_F(DoctorTest, WithoutAControllerNothingIsSaidOfNodes) {
  EXPECT_EQ(Run({"doctor"}, folder_ + "/nobody.sock"), 3);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("doctor: no controller answers on "));
}

// ---- Plans of orders. ----

TEST_F(ProgramTest, WithDryRunAnOrderIsOnlyPlanned) {
  for (const std::vector<const char*>& verb : std::vector<std::vector<const char*>>{
           {"suspend", "5"}, {"checkpoint", "5"}, {"vacate", "5"}, {"migrate", "5"}, {"kill", "5"}}) {
    service_.asked.clear();
    std::vector<const char*> arguments = verb;
    arguments.push_back("--dry-run");
    EXPECT_EQ(Run(arguments), 0) << err_;
    EXPECT_THAT(service_.asked, ElementsAre(std::string("plan ") + verb[0] + " 5"));
    EXPECT_THAT(out_,
                HasSubstr("nothing was changed; --if-unchanged 41 gives the order if this still holds\n"));
  }
}

TEST_F(ProgramTest, ACordonIsPlannedOfANode) {
  EXPECT_EQ(Run({"cordon", "n1", "--dry-run"}), 0) << err_;
  EXPECT_THAT(service_.asked, ElementsAre("plan cordon n1 0"));
}

TEST_F(ProgramTest, APlanIsThereAsJson) {
  EXPECT_EQ(Run({"--json", "kill", "5", "--dry-run"}), 0) << err_;
  const auto plan = nlohmann::json::parse(out_);
  EXPECT_EQ(plan["sequence"], "41");
  EXPECT_EQ(plan["verb"], "kill");
}

TEST_F(ProgramTest, AnOrderSaysWhichPlanItRestsOn) {
  EXPECT_EQ(Run({"kill", "5", "--no-wait", "--if-unchanged", "41"}), 0) << err_;
  EXPECT_THAT(service_.asked, ElementsAre("kill, if unchanged since 41 5"));
}

TEST_F(ProgramTest, APlanIsOfOneJob) {
  EXPECT_EQ(Run({"kill", "5", "6", "--if-unchanged", "41"}), 2);
  EXPECT_THAT(err_, HasSubstr("--if-unchanged: expected one job"));
  EXPECT_EQ(Run({"kill", "5", "--dry-run", "--if-unchanged", "41"}), 2);
  EXPECT_EQ(Run({"vacate", "5", "--dry-run", "--no-wait"}), 2);
}

}  // namespace
}  // namespace siding::cli
