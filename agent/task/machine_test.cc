#include "agent/task/machine.h"

#include <set>
#include <string>

#include "agent/task/ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using A = TaskAction;

// ---- The table. ----

std::string Cells(v1::TaskPhase phase) {
  std::string out;
  for (int e = 0; e < kTaskEventCount; ++e) {
    const auto event = static_cast<TaskEvent>(e);
    if (const auto next = NextPhase(phase, event))
      out += ToString(event) + ">" + v1::TaskPhase_Name(*next) + " ";
  }
  return out;
}

// Every cell, spelled out a second time: a change of the table must be meant.
TEST(TaskTable, Unspecified) {
  EXPECT_EQ(Cells(v1::TASK_PHASE_UNSPECIFIED),
            "launch>LAUNCHING restore>RESTORING kill>TASK_PHASE_UNSPECIFIED found-again>LAUNCHING ");
}
TEST(TaskTable, Launching) {
  EXPECT_EQ(Cells(v1::LAUNCHING),
            "kill>LAUNCHING started>RUNNING start-failed>LAUNCH_FAILED found-again>LAUNCHING exited>EXITED "
            "vanished>LOST ");
}
TEST(TaskTable, Restoring) {
  EXPECT_EQ(Cells(v1::RESTORING),
            "kill>RESTORING starts-over>LAUNCHING started>RUNNING start-failed>RESTORE_FAILED "
            "found-again>RESTORING exited>EXITED vanished>LOST ");
}
TEST(TaskTable, Running) {
  EXPECT_EQ(Cells(v1::RUNNING),
            "suspend>RUNNING dump>DUMPING abort>RUNNING save>RUNNING kill>RUNNING runs>RUNNING "
            "frozen>SUSPENDED found-again>RUNNING saved>SAVED exited>EXITED vanished>LOST ");
}
TEST(TaskTable, Suspended) {
  EXPECT_EQ(Cells(v1::SUSPENDED),
            "resume>SUSPENDED dump>DUMPING kill>SUSPENDED runs>RUNNING frozen>SUSPENDED "
            "found-again>SUSPENDED saved>SAVED exited>EXITED vanished>LOST ");
}
TEST(TaskTable, Dumping) {
  EXPECT_EQ(Cells(v1::DUMPING),
            "abort>DUMPING kill>DUMPING prepared>PREPARED runs>RUNNING frozen>SUSPENDED found-again>DUMPING "
            "checkpointed>CHECKPOINTED saved>SAVED exited>EXITED vanished>LOST ");
}
TEST(TaskTable, Prepared) {
  EXPECT_EQ(Cells(v1::PREPARED),
            "commit>PREPARED abort>PREPARED kill>PREPARED committing>PREPARED runs>RUNNING frozen>SUSPENDED "
            "found-again>DUMPING checkpointed>CHECKPOINTED saved>SAVED exited>EXITED vanished>LOST ");
}
TEST(TaskTable, NothingLeavesAFinalPhase) {
  for (v1::TaskPhase phase :
       {v1::CHECKPOINTED, v1::SAVED, v1::EXITED, v1::LAUNCH_FAILED, v1::RESTORE_FAILED, v1::LOST}) {
    EXPECT_TRUE(IsOver(phase));
    EXPECT_EQ(Cells(phase), "");
  }
}

// ---- The machine. ----

std::vector<A::Kind> Kinds(const TaskActions& actions) {
  std::vector<A::Kind> kinds;
  for (const A& action : actions) kinds.push_back(action.kind);
  return kinds;
}
TaskWork WorkOf(const TaskActions& actions) {
  for (const A& action : actions) {
    if (action.kind == A::kBegin) return action.work;
  }
  return TaskWork::kNone;
}

v1::ToAgent Order(int64_t op) {
  v1::ToAgent order;
  order.set_op(op);
  return order;
}
v1::ToAgent Launch() {
  v1::ToAgent order = Order(1);
  order.mutable_launch();
  return order;
}
v1::ToAgent Restore() {
  v1::ToAgent order = Order(1);
  order.mutable_restore()->set_checkpoint("7.1");
  return order;
}
v1::ToAgent Suspend(int64_t op, Duration notice = 0us) {
  v1::ToAgent order = Order(op);
  order.mutable_suspend()->set_notice_us(notice.count());
  return order;
}
v1::ToAgent Resume(int64_t op) {
  v1::ToAgent order = Order(op);
  order.mutable_resume();
  return order;
}
v1::ToAgent Dump(int64_t op, bool keep_running = false) {
  v1::ToAgent order = Order(op);
  order.mutable_dump()->set_checkpoint("7." + std::to_string(op));
  order.mutable_dump()->set_keep_running(keep_running);
  return order;
}
v1::ToAgent Commit(int64_t op) {
  v1::ToAgent order = Order(op);
  order.mutable_commit();
  return order;
}
v1::ToAgent Abort(int64_t op) {
  v1::ToAgent order = Order(op);
  order.mutable_abort();
  return order;
}
v1::ToAgent Pass(int64_t op, v1::DumpBarrier barrier) {
  v1::ToAgent order = Order(op);
  order.mutable_pass_barrier()->set_barrier(barrier);
  return order;
}
v1::ToAgent Save(int64_t op) {
  v1::ToAgent order = Order(op);
  order.mutable_save();
  return order;
}
v1::ToAgent Kill(int64_t op, Duration grace = 0us) {
  v1::ToAgent order = Order(op);
  order.mutable_kill()->set_grace_us(grace.count());
  return order;
}

class TaskMachineTest : public testing::Test {
 protected:
  TaskActions Take(const v1::ToAgent& order) { return machine_.Take(order, now_); }
  TaskActions See(const TaskObservation& seen) { return machine_.Observe(seen); }
  v1::TaskPhase phase() const { return machine_.phase(); }
  const v1::TaskReport& report() const { return machine_.record().report(); }
  void Run() {
    Take(Launch());
    See(task::Started{});
    See(task::WorkDone{});
  }
  void Freeze() {
    Take(Suspend(2));
    See(task::SuspendEnded{true, ""});
    See(task::WorkDone{});
  }
  void Prepare(int64_t op) {
    Take(Dump(op));
    See(task::Prepared{100, 60, "digest", 7ms});
  }
  // The agent dies, and another finds the task.
  TaskActions Restart(bool same_boot = true, task::FoundAgain::Shim shim = task::FoundAgain::kLives) {
    machine_ = TaskMachine(agent::TaskRecord(machine_.record()));
    return See(task::FoundAgain{same_boot, shim});
  }

  Time now_ = FromMicros(1'000'000);
  TaskMachine machine_{agent::TaskRecord()};
};

TEST_F(TaskMachineTest, ATaskIsRecordedBeforeItIsStarted) {
  EXPECT_THAT(Kinds(Take(Launch())), ElementsAre(A::kRecordStart, A::kSend, A::kBegin));
  EXPECT_EQ(phase(), v1::LAUNCHING);
  EXPECT_THAT(Kinds(See(task::Started{})), ElementsAre(A::kRecord, A::kSend));
  EXPECT_EQ(phase(), v1::RUNNING);
}

TEST_F(TaskMachineTest, AStartThatCannotBeRecordedFails) {
  Take(Launch());
  EXPECT_EQ(WorkOf(See(task::StartNotRecorded{"disk full"})), TaskWork::kFailStart);
  See(task::StartFailed{.error = "disk full", .node_problem = true});
  EXPECT_EQ(phase(), v1::LAUNCH_FAILED);
  EXPECT_TRUE(report().node_problem());
}

TEST_F(TaskMachineTest, ALaunchThatComesAgainIsAnsweredOnly) {
  Run();
  EXPECT_THAT(Kinds(Take(Launch())), ElementsAre(A::kSend));
  EXPECT_FALSE(machine_.busy());
}

TEST_F(TaskMachineTest, AnImageOfAnotherCommandMakesARestoreALaunch) {
  Take(Restore());
  See(task::StartsOver{});
  EXPECT_EQ(phase(), v1::LAUNCHING);
  EXPECT_FALSE(machine_.record().restored());
  EXPECT_FALSE(machine_.record().has_base()) << "nothing of another user's image is shared";
}

TEST_F(TaskMachineTest, TheDigestOfAnImageIsSaidUntilTheNextOne) {
  Run();
  Take(Dump(2, true));
  See(task::Prepared{100, 60, "first"});
  EXPECT_EQ(report().image_digest(), "first");
  Take(Commit(2));
  See(task::Committing{});
  See(task::Committed{});
  See(task::DumpEnded{false, false, "it is not back on its GPUs"});
  See(task::WorkDone{});
  EXPECT_EQ(report().image_digest(), "first") << "it counts";
  Take(Dump(3, true));
  See(task::Prepared{100, 60, "second"});
  See(task::DumpEnded{false, false, "called off"});
  EXPECT_EQ(report().image_digest(), "") << "there is no such image";
}

class DumpedTogetherTest : public TaskMachineTest {
 protected:
  DumpedTogetherTest() {
    Run();
    v1::ToAgent dump = Dump(2, true);
    dump.mutable_dump()->set_together(true);
    Take(dump);
  }
};

TEST_F(DumpedTogetherTest, ABarrierIsReported) {
  EXPECT_THAT(Kinds(See(task::AtBarrier{v1::BARRIER_STOP})), ElementsAre(A::kSend));
  EXPECT_EQ(report().barrier(), v1::BARRIER_STOP);
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_NONE);
}

TEST_F(DumpedTogetherTest, ThePassOfABarrierDoesNotWait) {
  See(task::AtBarrier{v1::BARRIER_STOP});
  EXPECT_THAT(Kinds(Take(Pass(2, v1::BARRIER_STOP))), ElementsAre(A::kWake));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_STOP);
}

TEST_F(DumpedTogetherTest, OneThatComesTwiceTakesNothingBack) {
  See(task::AtBarrier{v1::BARRIER_RUN_ON});
  Take(Pass(2, v1::BARRIER_RUN_ON));
  Take(Pass(2, v1::BARRIER_STOP));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_RUN_ON);
}

TEST_F(DumpedTogetherTest, ThatOfABarrierToWhichItHasNotComeIsNotMeant) {
  See(task::AtBarrier{v1::BARRIER_STOP});
  EXPECT_THAT(Kinds(Take(Pass(2, v1::BARRIER_RUN_ON))), ElementsAre(A::kSend));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_NONE);
}

TEST_F(DumpedTogetherTest, NorThatOfAnotherDump) {
  See(task::AtBarrier{v1::BARRIER_RUN_ON});
  Take(Pass(1, v1::BARRIER_RUN_ON));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_NONE);
}

TEST_F(DumpedTogetherTest, TheNextDumpStopsAtBarriersAgain) {
  See(task::AtBarrier{v1::BARRIER_STOP});
  Take(Pass(2, v1::BARRIER_RUN_ON));
  See(task::DumpEnded{false, false, "called off"});
  EXPECT_EQ(report().barrier(), v1::BARRIER_NONE);
  See(task::WorkDone{});
  Take(Dump(3, true));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_NONE);
}

TEST_F(DumpedTogetherTest, ThatItHasComeToTheLastOneIsRecordedBeforeItIsSaid) {
  EXPECT_THAT(Kinds(See(task::Captured{})), ElementsAre(A::kRecordFirst));
  EXPECT_EQ(report().barrier(), v1::BARRIER_NONE);
  EXPECT_THAT(Kinds(See(task::AtBarrier{v1::BARRIER_RUN_ON})), ElementsAre(A::kSend));
}

TEST_F(DumpedTogetherTest, AfterThatItIsNotDumpedAgainForThatCheckpoint) {
  See(task::Captured{});
  See(task::DumpEnded{false, false, "called off"});
  See(task::WorkDone{});
  v1::ToAgent again = Dump(3, true);
  again.mutable_dump()->set_checkpoint("7.2");
  EXPECT_THAT(Kinds(Take(again)), ElementsAre(A::kRecord, A::kSend));
  EXPECT_EQ(report().failed_op(), 3);
  Take(Dump(4, true));
  EXPECT_EQ(phase(), v1::DUMPING) << "for another it is";
}

TEST_F(DumpedTogetherTest, ANewAgentIsAtNone) {
  See(task::AtBarrier{v1::BARRIER_RUN_ON});
  TaskMachine next(machine_.record());
  next.Observe(task::FoundAgain{true, task::FoundAgain::kLives});
  EXPECT_EQ(next.record().report().barrier(), v1::BARRIER_NONE);
}

// It is one of several, and its image counts.
class LeavingTogetherTest : public TaskMachineTest {
 protected:
  LeavingTogetherTest() {
    Run();
    v1::ToAgent dump = Dump(2);
    dump.mutable_dump()->set_leaves_together(true);
    Take(dump);
    See(task::Prepared{100, 60, "digest"});
    Take(Commit(2));
    See(task::Committing{});
    See(task::Committed{});
  }
};

TEST_F(LeavingTogetherTest, ThatItWaitsIsReported) {
  EXPECT_THAT(Kinds(See(task::AtBarrier{v1::BARRIER_LEAVE})), ElementsAre(A::kSend));
  EXPECT_EQ(report().barrier(), v1::BARRIER_LEAVE);
  EXPECT_EQ(phase(), v1::PREPARED);
  EXPECT_EQ(report().committed_op(), 2);
}

TEST_F(LeavingTogetherTest, ItMayBeLetGo) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  EXPECT_THAT(Kinds(Take(Pass(2, v1::BARRIER_LEAVE))), ElementsAre(A::kWake));
  EXPECT_EQ(machine_.may_pass(), v1::BARRIER_LEAVE);
}

TEST_F(LeavingTogetherTest, OrCalledOff) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  EXPECT_THAT(Kinds(Take(Abort(2))), ElementsAre(A::kWake));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kAbort);
  See(task::DumpEnded{false, false, "called off"});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_EQ(report().barrier(), v1::BARRIER_NONE);
  EXPECT_FALSE(machine_.record().dump().committing()) << "killed now, it is not in its image";
}

TEST_F(LeavingTogetherTest, ButNotOnceItMayLeave) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  Take(Pass(2, v1::BARRIER_LEAVE));
  EXPECT_THAT(Kinds(Take(Abort(2))), ElementsAre(A::kSend));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kCommit);
}

TEST_F(LeavingTogetherTest, NorBeforeItsImageCounts) {
  EXPECT_THAT(Kinds(Take(Abort(2))), ElementsAre(A::kSend));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kCommit);
}

TEST_F(LeavingTogetherTest, AnotherImageThatDoesNotCountIsNotTakenForTheOneThatDoes) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  Take(Abort(2));
  See(task::DumpEnded{false, false, "called off"});
  See(task::WorkDone{});
  Take(Dump(3));
  See(task::Prepared{100, 60, "another"});
  See(task::ShimEnded{});
  agent::ShimExit exit;
  exit.set_signal(SIGKILL);
  See(task::DumpEnded{false, false, "the task has ended"});
  See(task::WorkDone{});
  See(task::Ended{.exit = &exit, .image_visible = false});
  EXPECT_EQ(phase(), v1::EXITED);
  EXPECT_EQ(report().committed_op(), 2);
  EXPECT_EQ(report().image_digest(), "digest");
}

TEST_F(LeavingTogetherTest, KilledWhileItWaitsItIsInItsImage) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  See(task::ShimEnded{});
  agent::ShimExit exit;
  exit.set_signal(SIGKILL);
  See(task::DumpEnded{false, false, "the task has ended"});
  See(task::WorkDone{});
  See(task::Ended{.exit = &exit, .image_visible = true});
  EXPECT_EQ(phase(), v1::CHECKPOINTED);
  EXPECT_EQ(report().image_digest(), "digest");
}

TEST_F(LeavingTogetherTest, ByANewAgentItIsDumpedAgain) {
  See(task::AtBarrier{v1::BARRIER_LEAVE});
  Restart();
  See(task::AdoptEnded{false, ""});
  See(task::WorkDone{});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_EQ(report().failed_op(), 2);
  Take(Dump(3));
  EXPECT_EQ(phase(), v1::DUMPING);
}

class FinishedBehindTest : public TaskMachineTest {
 protected:
  FinishedBehindTest() {
    Run();
    Take(Dump(2, true));
    seen_ = See(task::RunsOn{900ms});
  }
  TaskActions seen_;
};

TEST_F(FinishedBehindTest, ItIsToldThatTheTaskRuns) {
  EXPECT_THAT(Kinds(seen_), ElementsAre(A::kRecord, A::kSend));
  EXPECT_EQ(phase(), v1::DUMPING) << "there is no image yet";
  EXPECT_TRUE(report().runs_on());
  See(task::Prepared{100, 60, "digest"});
  EXPECT_TRUE(report().runs_on());
}

TEST_F(FinishedBehindTest, HowLongItStoodStillIsSaidUntilTheNextDump) {
  See(task::Prepared{100, 60, "digest"});
  Take(Commit(2));
  See(task::Committing{});
  See(task::Committed{});
  See(task::DumpEnded{false, false, ""});
  See(task::WorkDone{});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_FALSE(report().runs_on());
  EXPECT_EQ(report().stopped_us(), 900'000);
  Take(Dump(3, true));
  EXPECT_EQ(report().stopped_us(), 0);
}

TEST_F(FinishedBehindTest, TheNextImageSharesWithTheLastThatCounts) {
  EXPECT_FALSE(machine_.record().has_base());
  See(task::Prepared{100, 60, "digest"});
  EXPECT_EQ(report().image_new_bytes(), 60);
  EXPECT_FALSE(machine_.record().has_base()) << "it does not count yet";
  Take(Commit(2));
  See(task::Committing{});
  See(task::Committed{});
  See(task::DumpEnded{false, false, ""});
  See(task::WorkDone{});
  EXPECT_EQ(machine_.record().base().checkpoint(), "7.2");
  EXPECT_EQ(report().image_new_bytes(), 0);
  Take(Dump(3, true));
  See(task::DumpEnded{false, false, "no room"});
  EXPECT_EQ(machine_.record().base().checkpoint(), "7.2");
}

TEST_F(TaskMachineTest, TheFirstImageOfARestoredTaskSharesWithItsOwn) {
  v1::ToAgent order = Restore();
  order.mutable_restore()->set_tier(v1::SHARED);
  Take(order);
  EXPECT_EQ(machine_.record().base().checkpoint(), "7.1");
  EXPECT_EQ(machine_.record().base().tier(), v1::SHARED);
}

TEST_F(FinishedBehindTest, ANewAgentDoesNotTakeItForOneThatCriuHoldsStill) {
  Restart();
  EXPECT_FALSE(machine_.record().dump().cut_short());
  See(task::AdoptEnded{false, ""});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_FALSE(report().runs_on());
  EXPECT_EQ(report().failed_op(), 2);
}

TEST_F(FinishedBehindTest, OneThatIsToLeaveNeverRunsOn) {
  See(task::DumpEnded{false, false, "called off"});
  See(task::WorkDone{});
  Take(Dump(3));
  EXPECT_THAT(See(task::RunsOn{1ms}), IsEmpty());
  EXPECT_FALSE(report().runs_on());
}

TEST_F(TaskMachineTest, ACommittedDumpEndsTheTask) {
  Run();
  Prepare(10);
  EXPECT_THAT(Kinds(Take(Commit(10))), ElementsAre(A::kWake));
  EXPECT_THAT(Kinds(See(task::Committing{})), ElementsAre(A::kRecordDurably));
  See(task::Committed{});
  See(task::ShimEnded{});
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kFinalize);
  EXPECT_THAT(Kinds(See(task::Ended{nullptr, true})), ElementsAre(A::kReleaseGpus, A::kRecord, A::kSend));
  EXPECT_EQ(phase(), v1::CHECKPOINTED);
  EXPECT_EQ(report().committed_op(), 10);
}

TEST_F(TaskMachineTest, ACommitOfAnotherDumpDecidesNothing) {
  Run();
  Prepare(10);
  EXPECT_THAT(Kinds(Take(Commit(11))), ElementsAre(A::kSend));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kNone);
}

TEST_F(TaskMachineTest, ACommitBeforeTheImageIsWholeDecidesNothing) {
  Run();
  Take(Dump(10));
  Take(Commit(10));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kNone);
  EXPECT_THAT(See(task::Committing{}), IsEmpty());
}

TEST_F(TaskMachineTest, AnAbortAfterACommitIsTooLate) {
  Run();
  Prepare(10);
  Take(Commit(10));
  Take(Abort(10));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kCommit);
}

TEST_F(TaskMachineTest, AnAbortOfAnEarlierDumpDecidesNothing) {
  Run();
  Prepare(10);
  Take(Abort(9));
  EXPECT_EQ(machine_.decision(), TaskMachine::Decision::kNone);
}

TEST_F(TaskMachineTest, ADumpThatFailsLeavesTheTaskRunning) {
  Run();
  Prepare(10);
  Take(Abort(10));
  See(task::DumpEnded{false, false, "called off"});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_EQ(report().failed_op(), 10);
  EXPECT_EQ(report().checkpoint(), "");
  See(task::WorkDone{});
  EXPECT_FALSE(machine_.busy());
}

TEST_F(TaskMachineTest, ADumpThatHasFailedIsNotBegunAgain) {
  Run();
  Take(Dump(10));
  See(task::DumpEnded{false, false, "no space"});
  See(task::WorkDone{});
  EXPECT_THAT(Kinds(Take(Dump(10))), ElementsAre(A::kSend));
  EXPECT_EQ(WorkOf(Take(Dump(11))), TaskWork::kDump);
}

TEST_F(TaskMachineTest, WhetherTheTierIsToBlameIsSaidOfTheLastDump) {
  Run();
  Take(Dump(10));
  See(task::DumpEnded{false, false, "no space", true});
  See(task::WorkDone{});
  EXPECT_TRUE(report().tier_problem());
  Take(Dump(11));
  See(task::DumpEnded{false, false, "io_uring is open"});
  EXPECT_FALSE(report().tier_problem());
}

TEST_F(TaskMachineTest, AFrozenTaskIsFrozenAgainAfterAFailedDump) {
  Run();
  Freeze();
  Take(Dump(10));
  EXPECT_TRUE(machine_.record().dump().was_frozen());
  See(task::DumpEnded{true, false, "no space"});
  EXPECT_EQ(phase(), v1::SUSPENDED);
}

TEST_F(TaskMachineTest, ACommitThatCannotBeRecordedIsUndone) {
  Run();
  Prepare(10);
  Take(Commit(10));
  See(task::Committing{});
  See(task::CommitNotRecorded{});
  EXPECT_THAT(See(task::Committed{}), IsEmpty());
  See(task::DumpEnded{false, false, "disk full"});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_EQ(report().committed_op(), 0);
}

TEST_F(TaskMachineTest, AKillDuringADumpInterruptsItAndIsCarriedOutNext) {
  Run();
  Take(Dump(10));
  EXPECT_THAT(Kinds(Take(Kill(11))), ElementsAre(A::kAbandonDump, A::kWake, A::kSend));
  EXPECT_TRUE(machine_.interrupted());
  See(task::DumpEnded{false, true, "interrupted"});
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kKill);
  EXPECT_TRUE(machine_.record().kill_ordered());
  EXPECT_FALSE(machine_.interrupted());
}

TEST_F(TaskMachineTest, AnOrderDoesNotTakeThePlaceOfAKill) {
  Run();
  Take(Dump(10));
  Take(Kill(11));
  Take(Suspend(12));
  See(task::DumpEnded{false, true, "interrupted"});
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kKill);
}

TEST_F(TaskMachineTest, WorkThatKeepsAKillWaitingIsEndedByForce) {
  Run();
  Take(Suspend(10));
  EXPECT_THAT(Kinds(Take(Kill(11, 5s))), Not(Contains(A::kKillProcesses)));
  now_ += 34s;
  EXPECT_THAT(Kinds(Take(Kill(11, 5s))), Not(Contains(A::kKillProcesses)));
  now_ += 1s;
  EXPECT_THAT(Kinds(Take(Kill(11, 5s))),
              ElementsAre(A::kRecordDurably, A::kKillProcesses, A::kWake, A::kSend));
  EXPECT_TRUE(machine_.record().killed());
}

TEST_F(TaskMachineTest, ARestoredTaskOnItsGpusIsNotEndedByForce) {
  v1::ToAgent order = Restore();
  order.mutable_restore()->mutable_spec()->mutable_per_node()->set_gpus(1);
  Take(order);
  Take(Kill(11));
  now_ += 1h;
  EXPECT_THAT(Kinds(Take(Kill(11))), Not(Contains(A::kKillProcesses)));
}

TEST_F(TaskMachineTest, AGraceThatIsWaivedCountsAtOnce) {
  Run();
  Take(Kill(10, 30s));
  EXPECT_FALSE(machine_.kill_at_once());
  Take(Kill(11));
  EXPECT_TRUE(machine_.kill_at_once());
}

TEST_F(TaskMachineTest, AnEndThatWasNotOrderedIsTheTasksOwn) {
  Run();
  EXPECT_EQ(WorkOf(See(task::ShimEnded{})), TaskWork::kFinalize);
  agent::ShimExit exit;
  exit.set_code(3);
  See(task::Ended{&exit, false});
  EXPECT_EQ(phase(), v1::EXITED);
  EXPECT_EQ(report().exit_code(), 3);
  EXPECT_TRUE(report().own_end());
}

TEST_F(TaskMachineTest, AnEndAfterAKillIsNotTheTasksOwn) {
  Run();
  Take(Kill(10));
  See(task::KillBegun{});
  See(task::ShimEnded{});
  See(task::WorkDone{});
  agent::ShimExit exit;
  See(task::Ended{&exit, false});
  EXPECT_FALSE(report().own_end());
}

TEST_F(TaskMachineTest, AnEndDuringADumpIsJudgedOnceTheDumpIsOver) {
  Run();
  Prepare(10);
  EXPECT_EQ(WorkOf(See(task::ShimEnded{})), TaskWork::kNone);
  EXPECT_THAT(See(task::DumpEnded{false, false, "the task has ended"}), IsEmpty());
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kFinalize);
}

TEST_F(TaskMachineTest, AnEndIsReportedOnce) {
  Run();
  See(task::ShimEnded{});
  See(task::Ended{nullptr, false});
  EXPECT_EQ(phase(), v1::LOST);
  EXPECT_THAT(See(task::Ended{nullptr, false}), IsEmpty());
}

TEST_F(TaskMachineTest, AnEndForLackOfMemoryIsNamed) {
  Run();
  machine_.record().set_fence_memory(4096);
  See(task::ShimEnded{});
  agent::ShimExit exit;
  exit.set_signal(9);
  See(task::Ended{&exit, false, true});
  EXPECT_EQ(report().out_of_memory(), 4096);
}

TEST_F(TaskMachineTest, AnEndWith0DoesNotHideThatAProcessWasKilledForMemory) {
  Run();
  machine_.record().set_fence_memory(4096);
  See(task::ShimEnded{});
  const agent::ShimExit exit;
  See(task::Ended{.exit = &exit, .image_visible = false, .used_all_memory = true, .killed_for_memory = 2});
  EXPECT_EQ(phase(), v1::EXITED);
  EXPECT_EQ(report().exit_code(), 0);
  EXPECT_EQ(report().out_of_memory(), 4096);
  EXPECT_EQ(report().killed_for_memory(), 2);
}

TEST_F(TaskMachineTest, WhatWasKilledForTheNodesLackOfMemoryIsSaid) {
  Run();
  See(task::ShimEnded{});
  const agent::ShimExit exit;
  See(task::Ended{.exit = &exit, .image_visible = false, .killed_for_memory = 1});
  EXPECT_EQ(report().out_of_memory(), 0);
  EXPECT_EQ(report().killed_for_memory(), 1);
}

TEST_F(TaskMachineTest, OfAnEndByOrderNothingIsSaidOfMemory) {
  Run();
  Take(Kill(11));
  See(task::KillBegun{});
  See(task::WorkDone{});
  See(task::ShimEnded{});
  const agent::ShimExit exit;
  See(task::Ended{.exit = &exit, .image_visible = false, .killed_for_memory = 1});
  EXPECT_EQ(report().killed_for_memory(), 0);
}

TEST_F(TaskMachineTest, ASuspendWithNoticeCanBeCalledOff) {
  Run();
  EXPECT_THAT(Kinds(Take(Suspend(10, 5s))), ElementsAre(A::kRecord, A::kSend, A::kBegin));
  EXPECT_EQ(report().op(), 10);
  Take(Abort(10));
  EXPECT_TRUE(machine_.called_off());
  See(task::SuspendEnded{false, "called off"});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_FALSE(machine_.record().frozen());
}

TEST_F(TaskMachineTest, AResumeThatFailsLeavesTheTaskFrozen) {
  Run();
  Freeze();
  EXPECT_EQ(WorkOf(Take(Resume(10))), TaskWork::kResume);
  See(task::ResumeEnded{"does not thaw"});
  EXPECT_EQ(phase(), v1::SUSPENDED);
  EXPECT_EQ(report().failed_op(), 10);
  See(task::WorkDone{});
  Take(Resume(11));
  See(task::ResumeEnded{""});
  EXPECT_EQ(phase(), v1::RUNNING);
}

TEST_F(TaskMachineTest, OfOrdersThatWaitTheNewestIsCarriedOut) {
  Run();
  Take(Suspend(10));
  Take(Dump(11));
  Take(Resume(12));
  See(task::SuspendEnded{true, ""});
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kResume);
}

TEST_F(TaskMachineTest, AnOrderThatIsUnderWayDoesNotWaitBehindItself) {
  Run();
  Take(Suspend(10));
  EXPECT_THAT(Kinds(Take(Suspend(10))), ElementsAre(A::kSend));
  See(task::SuspendEnded{true, ""});
  EXPECT_THAT(See(task::WorkDone{}), IsEmpty());
}

TEST_F(TaskMachineTest, AProgramThatSavesItselfAndEndsIsSaved) {
  Run();
  Take(Save(10));
  See(task::SaveTold{});
  See(task::ShimEnded{});
  See(task::SaveEnded{false, ""});
  See(task::WorkDone{});
  agent::ShimExit exit;
  See(task::Ended{&exit, false});
  EXPECT_EQ(phase(), v1::SAVED);
}

TEST_F(TaskMachineTest, AProgramThatCouldNotBeToldHasNotSavedItself) {
  Run();
  Take(Save(10));
  See(task::SaveTold{});
  See(task::SaveNotTold{});
  See(task::SaveEnded{false, "the job's command is gone"});
  EXPECT_FALSE(machine_.record().saving());
  EXPECT_EQ(report().failed_op(), 10);
}

TEST_F(TaskMachineTest, ADumpThatWaitsForItsCommitIsUndoneByTheAgentsDeath) {
  Run();
  Prepare(10);
  EXPECT_EQ(WorkOf(Restart()), TaskWork::kAdopt);
  EXPECT_EQ(phase(), v1::DUMPING);
  EXPECT_THAT(Kinds(Take(Commit(10))), ElementsAre(A::kSend));
  See(task::AdoptEnded{false, ""});
  EXPECT_EQ(phase(), v1::RUNNING);
  EXPECT_EQ(report().failed_op(), 10);
}

TEST_F(TaskMachineTest, ACommitThatWasRecordedBeforeTheAgentsDeathCounts) {
  Run();
  Prepare(10);
  Take(Commit(10));
  See(task::Committing{});
  Restart(true, task::FoundAgain::kGone);
  EXPECT_EQ(WorkOf(See(task::WorkDone{})), TaskWork::kFinalize);
  See(task::Ended{nullptr, true});
  EXPECT_EQ(phase(), v1::CHECKPOINTED);
}

TEST_F(TaskMachineTest, AFrozenTaskIsFoundFrozen) {
  Run();
  Freeze();
  EXPECT_EQ(WorkOf(Restart()), TaskWork::kAdopt);
  See(task::AdoptEnded{true, ""});
  EXPECT_EQ(phase(), v1::SUSPENDED);
}

TEST_F(TaskMachineTest, AStartIsFoundUnderWay) {
  Take(Launch());
  EXPECT_EQ(WorkOf(Restart()), TaskWork::kAdopt);
  See(task::Started{});
  EXPECT_EQ(phase(), v1::RUNNING);
}

TEST_F(TaskMachineTest, ATaskOfAnEarlierBootIsJudgedAtOnce) {
  Run();
  EXPECT_THAT(Kinds(Restart(false)), ElementsAre(A::kFinalizeNow));
  See(task::Ended{nullptr, false});
  EXPECT_EQ(phase(), v1::LOST);
}

TEST_F(TaskMachineTest, AFolderWithoutARecordedStartIsJudged) {
  EXPECT_EQ(WorkOf(Restart()), TaskWork::kFinalize);
  See(task::Ended{nullptr, false});
  EXPECT_EQ(phase(), v1::LOST);
}

TEST_F(TaskMachineTest, AnAgentThatStopsBeginsNothingMore) {
  Run();
  Take(Dump(10));
  Take(Suspend(11));
  EXPECT_THAT(Kinds(See(task::AgentStops{})), ElementsAre(A::kWake));
  EXPECT_TRUE(machine_.called_off());
  See(task::DumpEnded{false, false, "interrupted"});
  EXPECT_THAT(See(task::WorkDone{true}), IsEmpty());
  EXPECT_FALSE(machine_.busy());
}

// ---- All pairs. ----

std::vector<v1::ToAgent> AllOrders() {
  return {Launch(),
          Restore(),
          Suspend(20),
          Suspend(20, 5s),
          Resume(20),
          Dump(20),
          Dump(20, true),
          Commit(20),
          Abort(20),
          Save(20),
          Kill(20),
          Kill(20, 5s),
          Order(20),
          Pass(20, v1::BARRIER_STOP),
          Pass(20, v1::BARRIER_RUN_ON)};
}
std::vector<TaskObservation> AllObservations() {
  static const agent::ShimExit exit;
  return {task::StartNotRecorded{"e"},
          task::StartsOver{},
          task::Started{},
          task::StartFailed{.error = "e"},
          task::SuspendEnded{true, ""},
          task::SuspendEnded{false, "e"},
          task::ResumeEnded{""},
          task::ResumeEnded{"e"},
          task::Captured{},
          task::AtBarrier{v1::BARRIER_STOP},
          task::AtBarrier{v1::BARRIER_RUN_ON},
          task::RunsOn{1ms},
          task::Prepared{1, 1, ""},
          task::Committing{},
          task::CommitNotRecorded{},
          task::Committed{},
          task::DumpEnded{true, false, ""},
          task::DumpEnded{false, true, "e"},
          task::SaveTold{},
          task::SaveNotTold{},
          task::SaveEnded{true, ""},
          task::SaveEnded{false, "e"},
          task::KillBegun{},
          task::ShimEnded{},
          task::AgentStops{},
          task::WorkDone{},
          task::WorkDone{true},
          task::Ended{nullptr, false},
          task::Ended{nullptr, true},
          task::Ended{&exit, false},
          task::FoundAgain{true, task::FoundAgain::kLives},
          task::FoundAgain{true, task::FoundAgain::kGone},
          task::FoundAgain{false, task::FoundAgain::kUnknown},
          task::AdoptEnded{true, ""},
          task::AdoptEnded{false, "e"}};
}

// In every phase, idle or busy, every order is answered or begins work, and every observation leaves a record
// that keeps to the rules: what is final stays, and is as good as the table says.
TEST(TaskMachinePairs, AllAreDefined) {
  for (int p = v1::TaskPhase_MIN; p <= v1::TaskPhase_MAX; ++p) {
    const auto phase = static_cast<v1::TaskPhase>(p);
    std::set<v1::TaskPhase> ways = {phase};
    for (int e = 0; e < kTaskEventCount; ++e) {
      if (const auto next = NextPhase(phase, static_cast<TaskEvent>(e))) ways.insert(*next);
    }
    // Busy with nothing, with a new order, with what an agent finds.
    for (const v1::ToAgent& first : AllOrders()) {
      for (const bool busy : {false, true}) {
        agent::TaskRecord record;
        record.mutable_report()->set_phase(phase);
        TaskMachine start(record);
        if (busy) start.Take(first, FromMicros(1));
        const v1::TaskPhase from = start.phase();
        EXPECT_TRUE(ways.contains(from));
        for (const v1::ToAgent& order : AllOrders()) {
          TaskMachine machine = start;
          const TaskActions actions = machine.Take(order, FromMicros(2));
          const std::string pair =
              v1::TaskPhase_Name(phase) + " " + first.ShortDebugString() + ", " + order.ShortDebugString();
          EXPECT_THAT(actions, Not(IsEmpty())) << pair;
          if (IsOver(from)) {
            EXPECT_THAT(Kinds(actions), ElementsAre(A::kSend)) << pair;
            EXPECT_EQ(machine.record().SerializeAsString(), start.record().SerializeAsString()) << pair;
          }
          if (start.busy()) {
            EXPECT_EQ(WorkOf(actions), TaskWork::kNone) << pair;
          }
          if (WorkOf(actions) != TaskWork::kNone) {
            EXPECT_EQ(actions.back().kind, A::kBegin) << pair;
          }
        }
        size_t number = 0;
        for (const TaskObservation& seen : AllObservations()) {
          TaskMachine machine = start;
          const TaskActions actions = machine.Observe(seen);
          const std::string pair = v1::TaskPhase_Name(from) + ", observation " + std::to_string(number++);
          if (IsOver(from)) {
            EXPECT_EQ(machine.phase(), from) << pair;
          }
          bool listed = machine.phase() == from;
          for (int e = 0; e < kTaskEventCount; ++e)
            listed |= NextPhase(from, static_cast<TaskEvent>(e)) == machine.phase();
          // The end of work may begin what waits.
          EXPECT_TRUE(listed || std::holds_alternative<task::WorkDone>(seen)) << pair;
          // A changed phase is written down before it is reported.
          if (machine.phase() != from && !std::holds_alternative<task::FoundAgain>(seen)) {
            const auto kinds = Kinds(actions);
            const auto send = std::find(kinds.begin(), kinds.end(), A::kSend);
            const auto record_at = std::find_if(kinds.begin(), kinds.end(), [](A::Kind kind) {
              return kind == A::kRecord || kind == A::kRecordStart || kind == A::kRecordFirst;
            });
            EXPECT_TRUE(record_at < send && send != kinds.end()) << pair;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace siding
