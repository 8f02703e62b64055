#include "controller/journal/journal.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/patience_for_test.h"
#include "controller/journal/journal_fixture.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

JobSpec FullSpec() {
  JobSpec spec;
  spec.name = "heat";
  spec.kind = JobKind::kOnDemand;
  spec.uid = 7;
  spec.gid = 8;
  spec.user = "ada";
  spec.nodes = 3;
  spec.per_node = {2, Bytes{5}, 1};
  spec.priority = -4;
  spec.command = {"a", "b c"};
  spec.env = {{"K", "v"}};
  spec.cluster_manager = "slurm";
  spec.labels = {{"qos", "low"}};
  spec.not_before = FromMicros(98);
  spec.hold = spec.walltime = 5s;
  spec.workdir = "/w";
  spec.output = "/o";
  spec.methods = {Method::kApp, Method::kKill};
  spec.app = AppMethod{12, "/m", 9s, {"again"}};
  spec.kill_grace = 3s;
  spec.notice = 15s;
  spec.gpu_collectives = GpuCollectives::kDrainable;
  spec.allow_io_uring = true;
  spec.append_files = true;
  spec.keep_connections = true;
  spec.on_node_failure = OnNodeFailure::kPark;
  spec.checkpoint_interval = 60s;
  spec.auto_checkpoint_interval = true;
  spec.max_preemptions = 2;
  spec.start_by = FromMicros(99);
  return spec;
}

Plan FullPlan() {
  Plan plan;
  plan.request = JobId(9);
  plan.feasible = true;
  plan.exact = false;
  plan.queued = true;
  plan.steps = {{.job = JobId(1),
                 .method = Method::kCheckpoint,
                 .tier = Tier::kLocal,
                 .nodes = {NodeId("n")},
                 .target = {NodeId("t")},
                 .begin = FromMicros(4),
                 .early = true,
                 .predicted_release = FromMicros(5),
                 .bytes = Bytes{6},
                 .loss_node_seconds = 1.5,
                 .reason = "why"}};
  plan.nodes = {NodeId("n"), NodeId("m")};
  plan.kept = {{JobId(2), "because", KeepRule::kMinRuntime, "min_runtime", "vip", FromMicros(8), "kill",
                std::chrono::seconds(9), 2.5, 3, "young"}};
  plan.kept_groups = {{KeepRule::kMinRuntime, "min_runtime", "vip", 10'000}};
  plan.predicted_start = FromMicros(6);
  plan.loss_node_seconds = 1.5;
  plan.cost_node_seconds = 2.5;
  plan.refusal = "no";
  plan.earliest = FromMicros(7);
  plan.awaited = {JobId(5)};
  return plan;
}

JobMoved FullMove() {
  JobMoved move;
  move.event = JobEvent::kOrderDump;
  move.reason = "r";
  move.by = "ada";
  move.nodes = {NodeId("n")};
  move.checkpoint = CheckpointId("1.2");
  move.tier = Tier::kLocal;
  move.keep_running = move.for_good = move.found = move.over_limit = move.from_beginning = move.interrupted =
      true;
  move.request = JobId(4);
  move.target = {NodeId("t")};
  move.notice = 15s;
  move.predicted = FromMicros(1);
  move.bytes = Bytes{2};
  move.started = FromMicros(3);
  move.stopped = 4ms;
  move.waited = 5ms;
  move.new_bytes = Bytes{1};
  move.exit_code = 4;
  return move;
}

Trends FullTrends() {
  const Trend trend{1,
                    2,
                    3,
                    4,
                    {{LossBy::kSuspend, 5}, {LossBy::kFailure, 9}},
                    {{-3, 10}, {0, 11}},
                    {{Tier::kLocal, {12, Bytes{13}, 14us}}}};
  return {{{FromMicros(15), trend}}, {{FromMicros(16), trend}}};
}

Totals FullTotals() {
  const Histogram histogram{{{-1, 2}, {kNoBound, 3}}, -4};
  const std::map<Tier, ImageTotals> images{{Tier::kShared, {histogram, histogram}}};
  Totals totals{{{LossBy::kApp, 5}}, {{JobAction::kSave, {6, 7, FromMicros(8)}}}, images, images};
  totals.release_ratios = totals.margins = totals.victims = histogram;
  totals.last_start = FromMicros(9);
  totals.last_margin = Duration(-10);
  totals.last_missed = FromMicros(11);
  totals.exact_plans = 12;
  totals.other_plans = 13;
  return totals;
}

// One of each kind, every field set.
std::vector<EventBody> EveryBody() {
  return {
      JobSubmitted{FullSpec()},
      FullMove(),
      RankExited{1, 2},
      RequestPlanned{FullPlan()},
      RequestRefused{FullSpec(), FullPlan()},
      MethodLost{Method::kSuspend, "why", FromMicros(7)},
      CheckpointChanged{CheckpointId("1.1"), CheckpointState::kDamaged, "pages", "ada"},
      CopiesChanged{CheckpointId("1.1"), NodeCopies::kUnwanted, "there is a newer one"},
      NodeCordoned{NodeId("n"), false, "ada"},
      Noted{"text", 3, "ada"},
      TasksChanged{{NodeId("n")}, 65536},
      JobsForgotten{{JobId(1), JobId(2)}, JobId(9), {1, 2, 3, 4, 5.5, 6, 7}, FullTrends(), FullTotals()},
      JournalRestored{7, JobId(1000)},
      NodeLost{NodeId("n"), false, "ada"},
      TasksGone{NodeId("n")},
      MethodRegained{Method::kApp},
      TasksLeft{NodeId("n")},
      JobHeld{false, true, "ada"},
      JobUpdated{-3, 90s, "ada"},
      OrderWaits{false, {HandVerb::kMigrate, Tier::kLocal, {NodeId("n")}}, FromMicros(8), "ada", true, "w"},
      BecamePreemptible{"walltime of 1m00s is over"},
      PolicyChanged{{"-margin: 1s", "+margin: 2s"}, "ada"}};
}

TEST(Codec, EveryKindOfEventIsTested) { EXPECT_EQ(EveryBody().size(), std::variant_size_v<EventBody>); }

TEST(Codec, EveryKindComesBackAsItWent) {
  for (const EventBody& body : EveryBody()) {
    const Event event{1, FromMicros(0), JobId(1), body};
    const std::string text = EncodeEventBody(event);
    auto back = DecodeEventBody(BodyKind(body), text);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->index(), body.index());
    EXPECT_EQ(EncodeEventBody(Event{1, FromMicros(0), JobId(1), *back}), text);
  }
}

TEST(Codec, NoFieldIsLeftOut) {
  const std::string text = EncodeEventBody(Event{1, {}, JobId(1), FullMove()});
  for (const char* field : {"event",        "reason",         "nodes",       "checkpoint",  "tier",
                            "keep_running", "for_good",       "request",     "target",      "predicted",
                            "bytes",        "started",        "exit_code",   "incarnation", "first_rank",
                            "through_ram",  "without_save",   "interrupted", "found",       "gpu_state_lost",
                            "over_limit",   "from_beginning", "stopped",     "new_bytes",   "waited"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\"") + field + "\""));
  }
}

TEST(Codec, WhereAStepOfAPlanMovesAJobIsRemembered) {
  const auto body =
      DecodeEventBody("planned", EncodeEventBody(Event{1, {}, JobId(1), RequestPlanned{FullPlan()}}));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(std::get<RequestPlanned>(*body).plan.steps.front().target, std::vector{NodeId("t")});
}

TEST(Codec, WhyAJobIsLeftAloneIsRemembered) {
  const auto body =
      DecodeEventBody("planned", EncodeEventBody(Event{1, {}, JobId(1), RequestPlanned{FullPlan()}}));
  ASSERT_TRUE(body.ok()) << body.status();
  const Plan& plan = std::get<RequestPlanned>(*body).plan;
  const PlanKeep& keep = plan.kept.at(0);
  EXPECT_EQ(keep.rule, KeepRule::kMinRuntime);
  EXPECT_EQ(keep.policy_key, "min_runtime");
  EXPECT_EQ(keep.job_class, "vip");
  EXPECT_EQ(keep.from, FromMicros(8));
  EXPECT_EQ(keep.way, "kill");
  EXPECT_EQ(keep.release, std::chrono::seconds(9));
  EXPECT_EQ(keep.loss_node_seconds, 2.5);
  EXPECT_EQ(keep.nodes, 3);
  EXPECT_EQ(keep.note, "young");
  EXPECT_EQ(plan.kept_groups.at(0).jobs, 10'000);
}

TEST(Codec, OfPlansOfEarlierVersionsOnlyTheSentenceIs) {
  const auto body = DecodeEventBody("planned", R"({"plan": {"kept": [{"job": 2, "reason": "not needed"}]}})");
  ASSERT_TRUE(body.ok()) << body.status();
  const Plan& plan = std::get<RequestPlanned>(*body).plan;
  EXPECT_EQ(plan.kept.at(0).reason, "not needed");
  EXPECT_EQ(plan.kept.at(0).rule, KeepRule::kUnsaid);
  EXPECT_TRUE(plan.kept_groups.empty());
}

TEST(Codec, ARuleThatIsNotKnownIsRefused) {
  EXPECT_FALSE(DecodeEventBody("planned", R"({"plan": {"kept": [{"job": 2, "rule": "whim"}]}})").ok());
}

TEST(Codec, TheNoticeOfAnOrderIsRemembered) {
  const auto body = DecodeEventBody("moved", EncodeEventBody(Event{1, {}, JobId(1), FullMove()}));
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(std::get<JobMoved>(*body).notice, 15s);
}

TEST(Codec, AbsentFieldsKeepTheirDefaults) {
  auto body = DecodeEventBody("moved", R"({"event":"started"})");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(std::get<JobMoved>(*body).event, JobEvent::kStarted);
}

TEST(Codec, UnknownKindIsNamed) {
  EXPECT_THAT(std::string(DecodeEventBody("gone-fishing", "{}").status().message()),
              HasSubstr("gone-fishing"));
}
TEST(Codec, AnUnknownKindOfJobIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(DecodeEventBody("submitted", R"({"spec":{"kind":"bananas"}})").status()));
}
TEST(Codec, AFractionIsNoWholeNumber) {
  EXPECT_TRUE(absl::IsDataLoss(DecodeEventBody("rank-exited", R"({"rank":1e300})").status()));
  EXPECT_TRUE(DecodeEventBody("planned", R"({"plan":{"loss_node_seconds":1.5}})").ok());
}
TEST(Codec, AMethodThatIsNotSaidIsTheDefault) {
  const auto body = DecodeEventBody("method-lost", R"({"why":"x"})");
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(std::get<MethodLost>(*body).method, MethodLost().method);
}
TEST(Codec, MalformedBodyIsDataLoss) {
  EXPECT_TRUE(absl::IsDataLoss(DecodeEventBody("moved", "{").status()));
}

using SqliteTest = JournalTest;

TEST_F(SqliteTest, ReadsNoMoreThanIsAskedFor) {
  auto journal = OpenSqliteJournal(path_);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->Append({Note(1), Note(2), Note(3), Note(4)}).ok());
  const auto events = (*journal)->Read(1, 2);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ(events->front().seq, 2);
  EXPECT_EQ(events->back().seq, 3);
}

TEST_F(SqliteTest, KeepsEventsOverARestart) {
  {
    auto journal = *OpenSqliteJournal(path_);
    ASSERT_TRUE(journal->Append({Note(1), Note(2)}).ok());
  }
  auto journal = *OpenSqliteJournal(path_);
  EXPECT_EQ(Count(*journal), 2);
  EXPECT_TRUE(journal->Append({Note(3)}).ok());
}

TEST_F(SqliteTest, KeepsEventsOfAProcessThatWasKilled) {
  const pid_t child = fork();
  if (child == 0) {
    auto journal = OpenSqliteJournal(path_);
    if (journal.ok() && (*journal)->Append({Note(1)}).ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the process that appends";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(Count(**OpenSqliteJournal(path_)), 1);
}

TEST_F(SqliteTest, RefusesAGapAndKeepsNothingOfIt) {
  auto journal = *OpenSqliteJournal(path_);
  EXPECT_FALSE(journal->Append({Note(1), Note(3)}).ok());
  EXPECT_EQ(Count(*journal), 0);
  EXPECT_TRUE(journal->Append({Note(1)}).ok());
}

// A limit on the size of files stands for a disk that is full: the write fails half-way all the same.
TEST_F(SqliteTest, AFullDiskFailsTheAppendWholeAndItGoesOnWhenThereIsRoom) {
  const pid_t child = fork();  // the limit is the process's
  if (child == 0) {
    auto journal = *OpenSqliteJournal(path_);
    if (!journal->Append({Note(1)}).ok()) _exit(1);
    signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t most = limit.rlim_cur;
    limit.rlim_cur = 64 << 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    int64_t last = 1;
    while (journal->Append({Note(last + 1), Note(last + 2)}).ok()) last += 2;
    limit.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (Count(*journal) != last) _exit(2);
    _exit(journal->Append({Note(last + 1)}).ok() && Count(*journal) == last + 1 ? 0 : 3);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the process whose disk is full";
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}

TEST_F(SqliteTest, AMissingEventIsDamage) {
  {
    auto journal = *OpenSqliteJournal(path_);
    ASSERT_TRUE(journal->Append({Note(1), Note(2), Note(3)}).ok());
  }
  ASSERT_TRUE(Sql("DELETE FROM events WHERE seq=2").ok());
  auto journal = *OpenSqliteJournal(path_);
  EXPECT_TRUE(absl::IsDataLoss(journal->Replay([](const Event&) {})));
}

TEST_F(SqliteTest, OneControllerOnly) {
  auto first = *OpenSqliteJournal(path_);
  EXPECT_THAT(std::string(OpenSqliteJournal(path_).status().message()), HasSubstr("another sidingd"));
}

TEST_F(SqliteTest, ADamagedFileIsRefusedWithAWayBack) {
  {
    auto journal = *OpenSqliteJournal(path_);
    std::vector<Event> events;
    for (int i = 1; i <= 200; ++i) events.push_back(Note(i));
    ASSERT_TRUE(journal->Append(events).ok());
  }
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(8192, 'x');
  }
  const absl::Status status = OpenSqliteJournal(path_).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(".recover"));
}

TEST_F(SqliteTest, AMissingFolderIsNamed) {
  EXPECT_THAT(std::string(OpenSqliteJournal(folder_ + "/none/j.db").status().message()),
              HasSubstr("/none/j.db"));
}

}  // namespace
}  // namespace siding
