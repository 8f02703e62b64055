#include "bench/simulated/node.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

class SimulatedNodeTest : public testing::Test {
 protected:
  static SimulatedNodeOptions Options() {
    SimulatedNodeOptions options;
    options.name = "node1";
    options.task_memory = 4'000'000'000;
    options.timing = {.launch = 300ms, .freeze = 50ms, .bytes_per_second = 1e9, .mean_run = 1h};
    return options;
  }
  v1::ToAgent Order(int64_t op) const {
    v1::ToAgent command;
    command.set_op(op);
    command.mutable_task()->set_job(7);
    command.mutable_task()->set_incarnation(1);
    return command;
  }
  v1::TaskPhase Tell(const v1::ToAgent& command) {
    const auto said = node_.Take(command, now_);
    return said.empty() ? v1::TASK_PHASE_UNSPECIFIED : said.back().report().phase();
  }
  // The phase that is reported after so long; none if nothing is.
  v1::TaskPhase After(Duration passed) {
    now_ += passed;
    const auto said = node_.Advance(now_);
    return said.empty() ? v1::TASK_PHASE_UNSPECIFIED : said.back().report().phase();
  }
  v1::ToAgent Launch() const {
    v1::ToAgent command = Order(1);
    command.mutable_launch()->mutable_spec();
    return command;
  }
  v1::ToAgent Dump(int64_t op, bool keep_running = false) const {
    v1::ToAgent command = Order(op);
    command.mutable_dump()->set_keep_running(keep_running);
    return command;
  }
  v1::ToAgent Together(int64_t op) const {
    v1::ToAgent command = Dump(op, true);
    command.mutable_dump()->set_together(true);
    return command;
  }
  v1::ToAgent Pass(int64_t op, v1::DumpBarrier barrier) const {
    v1::ToAgent command = Order(op);
    command.mutable_pass_barrier()->set_barrier(barrier);
    return command;
  }
  v1::DumpBarrier TellOfBarrier(const v1::ToAgent& command) {
    return node_.Take(command, now_).back().report().barrier();
  }
  void RunWithNetwork() {
    v1::ToAgent launch = Launch();
    launch.mutable_launch()->mutable_spec()->set_keep_connections(true);
    Tell(launch);
    After(300ms);
  }
  v1::ToAgent Commit(int64_t op) const {
    v1::ToAgent command = Order(op);
    command.mutable_commit();
    return command;
  }
  void Run() {
    Tell(Launch());
    After(300ms);
  }

  Time now_ = FromMicros(1'700'000'000'000'000);
  SimulatedNode node_{Options()};
};

TEST_F(SimulatedNodeTest, ATaskIsLaunchedBeforeItRuns) {
  EXPECT_EQ(Tell(Launch()), v1::LAUNCHING);
  EXPECT_EQ(After(300ms), v1::RUNNING);
}

TEST_F(SimulatedNodeTest, ACommandThatComesAgainIsAnsweredAndChangesNothing) {
  Run();
  EXPECT_EQ(Tell(Launch()), v1::RUNNING);
  EXPECT_EQ(node_.tasks(), 1);
}

TEST_F(SimulatedNodeTest, AnImageTakesAsLongAsTheMemoryIsLarge) {
  Run();
  EXPECT_EQ(Tell(Dump(100)), v1::DUMPING);
  After(3900ms);  // progress
  EXPECT_EQ(After(100ms), v1::PREPARED);
}

TEST_F(SimulatedNodeTest, ATaskIsGoneAfterTheCommit) {
  Run();
  Tell(Dump(100));
  After(4s);
  Tell(Commit(100));
  EXPECT_EQ(After(50ms), v1::CHECKPOINTED);
}

TEST_F(SimulatedNodeTest, ATaskGoesOnAfterACommitThatKeepsItRunning) {
  Run();
  Tell(Dump(100, true));
  After(4s);
  Tell(Commit(100));
  EXPECT_EQ(After(50ms), v1::RUNNING);
}

TEST_F(SimulatedNodeTest, ARankStopsAtBarriersUntilItMayPass) {
  Run();
  EXPECT_EQ(TellOfBarrier(Together(100)), v1::BARRIER_STOP);
  After(1h);
  EXPECT_EQ(node_.NextDue(), std::nullopt);
  EXPECT_EQ(TellOfBarrier(Pass(100, v1::BARRIER_STOP)), v1::BARRIER_STOP);
  EXPECT_EQ(After(4s), v1::DUMPING);
  EXPECT_EQ(TellOfBarrier(Pass(100, v1::BARRIER_STOP)), v1::BARRIER_RUN_ON);
  EXPECT_EQ(Tell(Pass(100, v1::BARRIER_RUN_ON)), v1::PREPARED);
}

TEST_F(SimulatedNodeTest, OneWhoseConnectionsAreKeptWaitsForTheHoldAsWell) {
  RunWithNetwork();
  Tell(Together(100));
  Tell(Pass(100, v1::BARRIER_STOP));
  After(50ms);
  EXPECT_EQ(TellOfBarrier(Pass(100, v1::BARRIER_STOP)), v1::BARRIER_HOLD);
  Tell(Pass(100, v1::BARRIER_HOLD));
  After(3900ms);  // progress
  After(100ms);
  EXPECT_EQ(TellOfBarrier(Pass(100, v1::BARRIER_HOLD)), v1::BARRIER_RUN_ON);
}

TEST_F(SimulatedNodeTest, OneThatLeavesWithOthersWaitsForThem) {
  Run();
  v1::ToAgent dump = Dump(100);
  dump.mutable_dump()->set_leaves_together(true);
  Tell(dump);
  After(4s);
  Tell(Commit(100));
  EXPECT_EQ(After(50ms), v1::PREPARED);
  EXPECT_EQ(node_.NextDue(), std::nullopt);
  EXPECT_EQ(TellOfBarrier(Pass(100, v1::BARRIER_STOP)), v1::BARRIER_LEAVE) << "another one is meant";
  EXPECT_EQ(Tell(Pass(100, v1::BARRIER_LEAVE)), v1::CHECKPOINTED);
}

TEST_F(SimulatedNodeTest, ARestoredRankRunsWhenAllAreJoined) {
  v1::ToAgent restore = Order(1);
  restore.mutable_restore()->mutable_spec()->set_keep_connections(true);
  Tell(restore);
  After(3900ms);  // progress
  EXPECT_EQ(After(100ms), v1::RESTORING);
  v1::ToAgent join = Order(1), all = Order(1);
  join.mutable_join_network();
  all.mutable_all_joined();
  Tell(all);
  EXPECT_EQ(node_.NextDue(), std::nullopt);
  Tell(join);
  Tell(all);
  EXPECT_EQ(After(50ms), v1::RUNNING);
}

TEST_F(SimulatedNodeTest, ACommitOfAnotherDumpIsNotObeyed) {
  Run();
  Tell(Dump(100));
  After(4s);
  EXPECT_EQ(Tell(Commit(101)), v1::PREPARED);
}

TEST_F(SimulatedNodeTest, AnAbortedDumpLeavesTheTaskRunning) {
  Run();
  Tell(Dump(100));
  v1::ToAgent abort = Order(100);
  abort.mutable_abort();
  EXPECT_EQ(Tell(abort), v1::RUNNING);
}

TEST_F(SimulatedNodeTest, AFrozenTaskDoesNotEnd) {
  Run();
  v1::ToAgent suspend = Order(100);
  suspend.mutable_suspend();
  Tell(suspend);
  EXPECT_EQ(After(50ms), v1::SUSPENDED);
  EXPECT_EQ(node_.NextDue(), std::nullopt);
}

TEST_F(SimulatedNodeTest, AJobThatSaysHowLongItHoldsItsNodesEndsThen) {
  v1::ToAgent launch = Launch();
  launch.mutable_launch()->mutable_spec()->set_hold_us(2'000'000);
  Tell(launch);
  After(300ms);
  EXPECT_EQ(After(2s), v1::EXITED);
}

TEST_F(SimulatedNodeTest, AForgottenTaskIsNotReportedAgain) {
  Run();
  v1::ToAgent forget = Order(100);
  forget.mutable_forget();
  Tell(forget);
  EXPECT_THAT(node_.Describe().tasks(), SizeIs(0));
}

TEST_F(SimulatedNodeTest, AnOrderToATaskThatIsNotThereIsNotAnswered) {
  v1::ToAgent kill = Order(100);
  kill.mutable_kill();
  EXPECT_THAT(node_.Take(kill, now_), SizeIs(0));
}

}  // namespace
}  // namespace siding
