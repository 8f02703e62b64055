#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/trend_count.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

const JobId kJob(1);

// Feeds events to a state, one second apart unless told otherwise.
class ApplyTest : public testing::Test {
 protected:
  ApplyTest() {
    JobSpec spec;
    spec.nodes = 2;
    Feed(JobSubmitted{spec});
  }
  void Feed(EventBody body, Duration after = 1s) {
    now_ += after;
    Apply(state_, Event{++seq_, now_, kJob, std::move(body)});
  }
  void Feed(JobEvent event, Duration after = 1s) { Feed(Moved(event), after); }
  static EventBody Moved(JobEvent event) {
    JobMoved move;
    move.event = event;
    return move;
  }
  void FeedPlace(const std::string& checkpoint = "") {
    JobMoved move;
    move.nodes = {NodeId("a"), NodeId("b")};
    move.checkpoint = CheckpointId(checkpoint);
    Feed(move);
  }
  void FeedDump(const std::string& id) {
    JobMoved move;
    move.event = JobEvent::kOrderDump;
    move.checkpoint = CheckpointId(id);
    Feed(move);
  }
  JobRecord& job() { return state_.jobs[kJob]; }

  ClusterState state_;
  Time now_ = FromMicros(1'000'000'000);
  int64_t seq_ = 0;
};

TEST_F(ApplyTest, PlacingBeginsAnIncarnation) {
  FeedPlace();
  EXPECT_EQ(job().state, JobState::kStarting);
  EXPECT_EQ(job().incarnation, 1);
  EXPECT_EQ(job().nodes.size(), 2u);
}

TEST_F(ApplyTest, AJobThatWasOnlyToldToMakeWayHasNot) {
  JobMoved order;
  order.request = JobId(2);
  FeedPlace();
  Feed(JobEvent::kStarted);
  for (const auto& [told, failed] : {std::pair(JobEvent::kOrderSave, JobEvent::kSaveFailed),
                                     std::pair(JobEvent::kOrderDump, JobEvent::kDumpFailed),
                                     std::pair(JobEvent::kOrderSuspend, JobEvent::kFreezeFailed)}) {
    order.event = told;
    Feed(order);
    Feed(failed);
    if (job().state == JobState::kResuming) Feed(JobEvent::kThawed);
    EXPECT_EQ(job().preemptions, 0) << ToString(told);
    EXPECT_TRUE(job().last_preempted.has_value());
  }
}

// Images after which the job runs on.
class LearnTest : public ApplyTest {
 protected:
  LearnTest() {
    FeedPlace();
    Feed(JobEvent::kStarted);
  }
  void FeedDump(const std::string& id) {
    JobMoved move{.event = JobEvent::kOrderDump};
    move.checkpoint = CheckpointId(id);
    move.keep_running = true;
    Feed(move);
  }
  // It counts 4 s after it was ordered.
  void MakeImage(const std::string& id, Duration stopped = Duration(0)) {
    FeedDump(id);
    JobMoved move{.event = JobEvent::kCommit, .bytes = Bytes{100}, .new_bytes = Bytes{10}};
    Feed(move, 3s);
    move = JobMoved{.event = JobEvent::kContinued, .stopped = stopped};
    Feed(move);
  }
  void Delete(const std::string& id, CheckpointState state = CheckpointState::kGone) {
    Feed(CheckpointChanged{CheckpointId(id), CheckpointState::kDeleted});
    Feed(CheckpointChanged{CheckpointId(id), state});
  }
};

TEST_F(LearnTest, WhatAnImageCostIsRemembered) {
  MakeImage("1.1", 50ms);
  ASSERT_EQ(job().checkpoint_costs.size(), 1u);
  EXPECT_EQ(job().checkpoint_costs[0], (CheckpointCost{Tier::kShared, 50ms, 4s, Bytes{10}, /*ran_on=*/true}));
  EXPECT_EQ(state_.checkpoints.at(CheckpointId("1.1")).took, 4s);
}

TEST_F(LearnTest, RanksThatWaitedLongWillDoSoAgain) {
  const auto waited = [&](const std::string& id, Duration said) {
    FeedDump(id);
    Feed(JobMoved{.event = JobEvent::kCommit, .waited = said});
    Feed(JobEvent::kContinued);
    return job().ranks_waited;
  };
  EXPECT_EQ(waited("1.1", Duration(0)), std::nullopt);
  EXPECT_EQ(waited("1.2", 8s), 8s);
  EXPECT_EQ(waited("1.3", 1s), 4s);
  EXPECT_EQ(waited("1.4", 9s), 9s);
}

// As jobs of several nodes do, of which agents say nothing.
TEST_F(LearnTest, AJobStandsStillAllTheTimeIfNothingIsSaid) {
  MakeImage("1.1");
  EXPECT_EQ(job().checkpoint_costs.at(0).stop, 4s);
  EXPECT_FALSE(job().checkpoint_costs.at(0).ran_on);
}

TEST_F(LearnTest, ImagesThatAreGoneAreForgottenWithTheNextOne) {
  MakeImage("1.1");
  MakeImage("1.2");
  Delete("1.1");
  EXPECT_EQ(job().ordered.size(), 2u);
  MakeImage("1.3");
  EXPECT_EQ(job().ordered, (std::vector{CheckpointId("1.2"), CheckpointId("1.3")}));
  EXPECT_FALSE(state_.checkpoints.contains(CheckpointId("1.1")));
  EXPECT_EQ(job().checkpoint_count, 3);
}

// No controller writes that, and a journal that says so is read all the same.
TEST_F(LearnTest, ANameThatWasGivenTwiceIsForgottenOnce) {
  MakeImage("1.1");
  JobMoved again;
  again.event = JobEvent::kOrderDump;
  again.checkpoint = CheckpointId("1.1");
  Feed(again);
  Feed(JobEvent::kDumpFailed);
  Feed(JobEvent::kThawed);
  MakeImage("1.2");
  EXPECT_EQ(job().ordered, std::vector{CheckpointId("1.2")});
}

TEST_F(LearnTest, OneThatIsOnlyDeletedIsStillToBeTakenOutOfTheStore) {
  MakeImage("1.1");
  MakeImage("1.2");
  Feed(CheckpointChanged{CheckpointId("1.1"), CheckpointState::kDeleted});
  MakeImage("1.3");
  EXPECT_TRUE(state_.unwanted.contains(CheckpointId("1.1")));
  EXPECT_TRUE(state_.checkpoints.contains(CheckpointId("1.1")));
}

TEST_F(ApplyTest, OneThatHasMadeWayIsCountedOnce) {
  JobMoved order;
  order.request = JobId(2);
  FeedPlace();
  Feed(JobEvent::kStarted);
  order.event = JobEvent::kOrderSuspend;
  Feed(order);
  Feed(JobEvent::kFrozen);
  EXPECT_EQ(job().preemptions, 1);
  // Behind that, through RAM.
  FeedDump("1.1");
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  EXPECT_EQ(job().preemptions, 1);
  FeedPlace("1.1");
  Feed(JobEvent::kRestored);
  order.event = JobEvent::kOrderDump;
  order.checkpoint = CheckpointId("1.2");
  Feed(order);
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  EXPECT_EQ(job().preemptions, 2);
  FeedPlace("1.2");
  Feed(JobEvent::kRestored);
  order.event = JobEvent::kOrderKill;
  Feed(order);
  Feed(JobEvent::kRequeued);
  EXPECT_EQ(job().preemptions, 3);
}

TEST_F(ApplyTest, WalltimeIsUsedUpWhileItRuns) {
  FeedPlace();
  Feed(JobEvent::kStarted, 10s);
  FeedDump("1.1");  // after a second
  Feed(JobEvent::kCommit, 4s);
  EXPECT_EQ(job().ran, 5s);
  Feed(JobEvent::kReleased, 60s);
  EXPECT_EQ(RanFor(job(), now_ + 60s), 5s);
  FeedPlace("1.1");
  JobMoved restored;
  restored.event = JobEvent::kRestored;
  restored.checkpoint = CheckpointId("1.1");
  Feed(restored, 60s);
  EXPECT_EQ(RanFor(job(), now_ + 60s), 61s);
}

TEST_F(ApplyTest, FromTheBeginningItHasAllOfIt) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  Feed(JobEvent::kRestartNeeded, 60s);
  FeedPlace();
  Feed(JobEvent::kStarted);
  EXPECT_EQ(RanFor(job(), now_), 0s);
}

TEST_F(ApplyTest, OneThatIsNotToEndAfterAllBeginsAsItWasTo) {
  FeedPlace();
  Feed(JobEvent::kOrderKill);
  Feed(JobEvent::kStartGoesOn);
  EXPECT_EQ(job().state, JobState::kStarting);
  EXPECT_EQ(job().current.event, JobEvent::kPlace);
  EXPECT_FALSE(job().first_started);
  Feed(JobEvent::kStarted);
  EXPECT_TRUE(job().first_started);
}
TEST_F(ApplyTest, AlsoOneThatIsRestored) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("c1");
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  FeedPlace("c1");
  Feed(JobEvent::kOrderKill);
  Feed(JobEvent::kRestoreGoesOn);
  EXPECT_EQ(job().state, JobState::kRestoring);
  EXPECT_EQ(job().current.checkpoint, CheckpointId("c1"));
}
TEST_F(ApplyTest, OneThatHasEndedAsOrderedDoesNotBeginAfterAll) {
  FeedPlace();
  Feed(JobEvent::kOrderKill);
  EXPECT_TRUE(job().beginning);
  Feed(JobEvent::kRequeued);
  EXPECT_FALSE(job().beginning);
}

TEST_F(ApplyTest, AKeyIsForgottenWithItsJob) {
  Feed(JobSubmitted{JobSpec(), "key"});
  EXPECT_EQ(state_.keyed.size(), 1u);
  Feed(JobEvent::kCancelled);
  Feed(JobsForgotten{{kJob}, kJob, {}});
  EXPECT_TRUE(state_.keyed.empty());
}

TEST_F(ApplyTest, AJobIsUnfinishedUntilItEnds) {
  EXPECT_TRUE(state_.unfinished.contains(kJob));
  FeedPlace();
  Feed(JobEvent::kStarted);
  Feed(JobEvent::kSucceeded);
  EXPECT_FALSE(state_.unfinished.contains(kJob));
}

TEST_F(ApplyTest, ARefusedRequestIsNotUnfinished) {
  Apply(state_, Event{++seq_, now_, JobId(2), RequestRefused{}});
  EXPECT_FALSE(state_.unfinished.contains(JobId(2)));
}

TEST_F(ApplyTest, OneThatCouldNotBeStartedHasAnExitCode) {
  FeedPlace();
  Feed(JobEvent::kStartFailed);
  EXPECT_EQ(job().exit_code, 127);
}

TEST_F(ApplyTest, OneThatWasCancelledBeforeItRanHasTheExitCodeOfSigterm) {
  Feed(JobEvent::kCancelled);
  EXPECT_EQ(job().exit_code, 143);
}

TEST_F(ApplyTest, WhatMeansNothingIsIgnored) {
  Feed(JobEvent::kFrozen);
  EXPECT_EQ(job().state, JobState::kPending);
}

TEST_F(ApplyTest, ACheckpointCountsOnlyWhenTheJobHasLeft) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("1.1");
  Feed(JobEvent::kCommit);
  EXPECT_TRUE(job().checkpoints.empty());
  Feed(JobEvent::kReleased);
  EXPECT_EQ(job().checkpoints, std::vector<CheckpointId>{CheckpointId("1.1")});
  EXPECT_EQ(state_.checkpoints[CheckpointId("1.1")].state, CheckpointState::kGood);
  EXPECT_TRUE(job().nodes.empty());
}

TEST_F(ApplyTest, StandstillIsLostNodeSeconds) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("1.1");
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  FeedPlace("1.1");
  Feed(JobEvent::kRestored, 10s);
  // Two nodes stood still from the commit on: 1 s to the release, 1 s to the placement, 10 s to the restore.
  EXPECT_DOUBLE_EQ(job().lost_node_seconds, 24);
}

TEST_F(ApplyTest, AKillLosesTheWorkSinceTheStart) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  Feed(JobEvent::kOrderKill, 30s);
  Feed(JobEvent::kRequeued, 2s);
  EXPECT_EQ(job().state, JobState::kPending);
  EXPECT_DOUBLE_EQ(job().lost_node_seconds, 64);
}

TEST_F(ApplyTest, AFailedDumpForgetsTheCheckpoint) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("1.1");
  Feed(JobEvent::kDumpFailed);
  EXPECT_EQ(job().state, JobState::kResuming);
  EXPECT_EQ(state_.checkpoints[CheckpointId("1.1")].state, CheckpointState::kFailed);
  EXPECT_TRUE(job().checkpoints.empty());
}

TEST_F(ApplyTest, BehindTheCommitItDeletesWhatIsThere) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("1.1");
  Feed(JobEvent::kCommit, 4s);
  Feed(JobEvent::kDumpFailed);
  EXPECT_EQ(job().state, JobState::kResuming);
  EXPECT_EQ(state_.checkpoints[CheckpointId("1.1")].state, CheckpointState::kDeleted);
  EXPECT_TRUE(state_.unwanted.contains(CheckpointId("1.1")));
  EXPECT_TRUE(job().checkpoints.empty());
  Feed(JobEvent::kThawed);
  EXPECT_FALSE(job().stopped_at);
}

TEST_F(ApplyTest, ADamagedCheckpointIsNotTriedAgain) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  FeedDump("1.1");
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  Feed(CheckpointChanged{CheckpointId("1.1"), CheckpointState::kDamaged, "pages-1.img"});
  EXPECT_TRUE(job().checkpoints.empty());
}

TEST_F(ApplyTest, ARankThatEndedBeforeTheDumpStaysEnded) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  Feed(RankExited{1, 0});
  FeedDump("1.1");
  Feed(JobEvent::kCommit);
  Feed(JobEvent::kReleased);
  FeedPlace("1.1");
  EXPECT_TRUE(job().exited.contains(1));
}

TEST_F(ApplyTest, ARestartFromTheBeginningStartsEveryRank) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  Feed(RankExited{1, 0});
  Feed(JobEvent::kRestartNeeded);
  EXPECT_TRUE(job().exited.empty());
}

TEST_F(ApplyTest, WhoMakesWayForARequestIsPreempted) {
  FeedPlace();
  Feed(JobEvent::kStarted);
  JobMoved move;
  move.event = JobEvent::kOrderSuspend;
  move.request = JobId(7);
  Feed(move);
  EXPECT_EQ(job().displaced_by, JobId(7));
  Feed(JobEvent::kFrozen);
  EXPECT_EQ(job().preemptions, 1);
}

// ---- What happened by hour and by day. ----

class TrendTest : public ApplyTest {
 protected:
  TrendTest() {
    FeedPlace();
    Feed(JobEvent::kStarted);
  }
  // Takes as long as it was to, and twice as long.
  void FeedOrder(JobEvent event, bool keep_running = false) {
    JobMoved order;
    order.event = event;
    order.request = JobId(2);
    order.checkpoint = CheckpointId("1.1");
    order.keep_running = keep_running;
    order.predicted = now_ + 1s + 10s;
    Feed(order);
  }
  void FeedCommit() {
    JobMoved commit;
    commit.event = JobEvent::kCommit;
    commit.bytes = Bytes{1000};
    Feed(commit, 8s);
  }
  // So far, of the whole of it.
  Trend Sum() {
    Trend sum;
    for (const auto& [at, trend] : TrendsOf(state_, now_).hours) Add(sum, trend);
    return sum;
  }
  int64_t LostBy(LossBy by) { return Sum().lost_node_ms[by]; }
  ActionCount CountOf(JobAction action) { return TotalsOf(state_).actions[action]; }
};

TEST_F(TrendTest, AFreezeIsCountedWhenTheNodesAreFree) {
  FeedOrder(JobEvent::kOrderSuspend);
  EXPECT_EQ(Sum(), Trend());
  Feed(JobEvent::kFrozen, 10s);
  EXPECT_EQ(Sum().preemptions, 1);
  EXPECT_EQ(Sum().releases, (std::map<int, int64_t>{{0, 1}}));
}
TEST_F(TrendTest, TwiceAsLongAsPredictedIsAnOctaveUp) {
  FeedOrder(JobEvent::kOrderKill);
  Feed(JobEvent::kReleased, 20s);
  EXPECT_EQ(Quantile(Sum().releases, 0.5), 2);
}
TEST_F(TrendTest, ADumpCountsFromItsOrderAndNotFromItsCommit) {
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  Feed(JobEvent::kReleased, 12s);
  EXPECT_EQ(Quantile(Sum().releases, 0.5), 2);
}
TEST_F(TrendTest, OneThatGoesOnFreesNoNodes) {
  FeedOrder(JobEvent::kOrderDump, true);
  FeedCommit();
  Feed(JobEvent::kContinued);
  EXPECT_TRUE(Sum().releases.empty());
}
TEST_F(TrendTest, AnOrderThatFailedFreesNone) {
  FeedOrder(JobEvent::kOrderDump);
  Feed(JobEvent::kDumpFailed);
  EXPECT_EQ(Sum(), Trend());
}
TEST_F(TrendTest, AnImageIsCountedWhenItCounts) {
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  EXPECT_TRUE(Sum().writes.empty());
  Feed(JobEvent::kReleased, 2s);
  EXPECT_EQ(Sum().writes, (std::map<Tier, ImageWrites>{{Tier::kShared, {1, Bytes{1000}, 10s}}}));
}
TEST_F(TrendTest, AnImageThatSharesBytesSaysNothingOfTheDisk) {
  FeedOrder(JobEvent::kOrderDump, true);
  JobMoved commit;
  commit.event = JobEvent::kCommit;
  commit.checkpoint = CheckpointId("1.1");
  commit.bytes = Bytes{1000};
  commit.new_bytes = Bytes{10};
  Feed(commit);
  Feed(JobEvent::kContinued, 2s);
  EXPECT_TRUE(Sum().writes.empty());
}
TEST_F(TrendTest, TheTimeOfANoticeIsNotThatOfTheDisk) {
  JobMoved order;
  order.event = JobEvent::kOrderDump;
  order.checkpoint = CheckpointId("1.1");
  order.notice = 5s;
  Feed(order);
  FeedCommit();
  Feed(JobEvent::kReleased, 2s);
  EXPECT_EQ(Sum().writes.at(Tier::kShared).took, 5s);
}
TEST_F(TrendTest, WhatAFrozenJobLostIsKnownWhenItGoesOn) {
  FeedOrder(JobEvent::kOrderSuspend);
  Feed(JobEvent::kFrozen);
  Feed(JobEvent::kOrderResume, 30s);
  Feed(JobEvent::kThawed, 0s);
  EXPECT_EQ(LostBy(LossBy::kSuspend), 2 * 30'000);
}
TEST_F(TrendTest, WhatOneInAnImageLost) {
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  Feed(JobEvent::kReleased, 0s);
  FeedPlace("1.1");
  Feed(JobEvent::kRestored, 9s);
  EXPECT_EQ(LostBy(LossBy::kCheckpoint), 2 * 10'000);
}
TEST_F(TrendTest, WhatAKillLost) {
  FeedOrder(JobEvent::kOrderKill);
  Feed(JobEvent::kRequeued, 9s);
  EXPECT_EQ(LostBy(LossBy::kKill), 2 * 10'000) << "since it was started";
  FeedPlace();
  Feed(JobEvent::kStarted, 4s);
  EXPECT_EQ(LostBy(LossBy::kKill), 2 * 15'000) << "and until it was again";
}
TEST_F(TrendTest, WhatAFailureLost) {
  Feed(JobEvent::kRestartNeeded, 7s);
  EXPECT_EQ(LostBy(LossBy::kFailure), 2 * 7'000);
}
TEST_F(TrendTest, ARestoreThatFailsMeanwhileIsNotWhatItWasLostBy) {
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  Feed(JobEvent::kReleased, 0s);
  FeedPlace("1.1");
  Feed(JobEvent::kRestoreFailed);
  FeedPlace("1.1");
  Feed(JobEvent::kRestored);
  EXPECT_EQ(LostBy(LossBy::kFailure), 0);
  EXPECT_EQ(LostBy(LossBy::kCheckpoint), 2 * 4'000) << "from the commit on";
}
TEST_F(TrendTest, OneThatGoesThroughRamFreesItsNodesOnce) {
  FeedOrder(JobEvent::kOrderSuspend);
  Feed(JobEvent::kFrozen, 10s);
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  Feed(JobEvent::kReleased, 60s);
  EXPECT_EQ(Sum().releases, (std::map<int, int64_t>{{0, 1}}));
}
TEST_F(TrendTest, WhatHappensLaterIsOfALaterHour) {
  FeedOrder(JobEvent::kOrderSuspend);
  Feed(JobEvent::kFrozen, 10s);
  Feed(JobEvent::kOrderResume, 3h);
  Feed(JobEvent::kThawed, 0s);
  const Trends trends = TrendsOf(state_, now_);
  ASSERT_EQ(trends.hours.size(), 2u);
  EXPECT_EQ(trends.hours.begin()->second.preemptions, 1);
  EXPECT_EQ(trends.hours.rbegin()->second.lost_node_ms.at(LossBy::kSuspend), 2 * 3 * 3'600'000);
}

TEST_F(TrendTest, TotalsHaveWhatTrendsHaveLost) {
  FeedOrder(JobEvent::kOrderKill);
  Feed(JobEvent::kRequeued, 9s);
  EXPECT_EQ(TotalsOf(state_).lost_node_ms, Sum().lost_node_ms);
}
TEST_F(TrendTest, WhatIsDoneToAJobIsCountedWhenItHasEnded) {
  EXPECT_EQ(CountOf(JobAction::kStart).done, 1);
  FeedOrder(JobEvent::kOrderSuspend);
  EXPECT_EQ(CountOf(JobAction::kSuspend), ActionCount());
  Feed(JobEvent::kFrozen, 20s);
  EXPECT_EQ(CountOf(JobAction::kSuspend).done, 1);
  const Histogram ratios = TotalsOf(state_).release_ratios;
  EXPECT_EQ(ratios.counts, (std::map<int64_t, int64_t>{{2000, 1}}));
  EXPECT_EQ(ratios.sum, 2000);
}
TEST_F(TrendTest, ADumpThatFailsIsNoResume) {
  FeedOrder(JobEvent::kOrderDump);
  Feed(JobEvent::kDumpFailed);
  const Time failed = now_;
  Feed(JobEvent::kThawed);
  EXPECT_EQ(CountOf(JobAction::kCheckpoint), (ActionCount{0, 1, failed}));
  EXPECT_EQ(CountOf(JobAction::kResume), ActionCount());
  EXPECT_TRUE(TotalsOf(state_).dumps.empty());
}
TEST_F(TrendTest, DumpAndRestoreAreMeasured) {
  FeedOrder(JobEvent::kOrderDump);
  FeedCommit();
  Feed(JobEvent::kReleased, 2s);
  FeedPlace("1.1");
  Feed(JobEvent::kRestored, 4s);
  const Totals totals = TotalsOf(state_);
  EXPECT_EQ(totals.dumps.at(Tier::kShared).ms.sum, 10'000);
  EXPECT_EQ(totals.dumps.at(Tier::kShared).bytes.sum, 1000);
  EXPECT_EQ(totals.restores.at(Tier::kShared).ms.sum, 4'000);
  EXPECT_EQ(totals.restores.at(Tier::kShared).bytes.sum, 1000);
  EXPECT_EQ(CountOf(JobAction::kRestore).done, 1);
}
TEST_F(TrendTest, OfAnImageThatSharesBytesThoseCountThatItWrote) {
  FeedOrder(JobEvent::kOrderDump, true);
  JobMoved commit;
  commit.event = JobEvent::kCommit;
  commit.bytes = Bytes{1000};
  commit.new_bytes = Bytes{10};
  Feed(commit);
  Feed(JobEvent::kContinued, 2s);
  EXPECT_EQ(TotalsOf(state_).dumps.at(Tier::kShared).bytes.sum, 10);
}

class DeadlineTrendTest : public TrendTest {
 protected:
  // Starts it so long after its deadline.
  void StartRequest(Duration late) {
    state_ = ClusterState();
    JobSpec spec;
    spec.kind = JobKind::kOnDemand;
    spec.start_by = now_ + 10s - late;
    Feed(JobSubmitted{spec});
    FeedPlace();
    Feed(JobEvent::kStarted, 8s);
  }
};

TEST_F(DeadlineTrendTest, OneThatWasMet) {
  StartRequest(-1s);
  EXPECT_EQ(Sum().met, 1);
  EXPECT_EQ(Sum().missed, 0);
  EXPECT_EQ(TotalsOf(state_).margins.counts, (std::map<int64_t, int64_t>{{1000, 1}}));
  EXPECT_EQ(TotalsOf(state_).last_missed, Time());
}
TEST_F(DeadlineTrendTest, OneThatWasMissed) {
  StartRequest(1s);
  EXPECT_EQ(Sum().met, 0);
  EXPECT_EQ(Sum().missed, 1);
  const Totals totals = TotalsOf(state_);
  EXPECT_EQ(totals.last_margin, -1s);
  EXPECT_EQ(totals.last_missed, now_);
  EXPECT_EQ(CountUpTo(totals.margins, 0), 1);
}
TEST_F(DeadlineTrendTest, ARequestThatWasRefused) {
  state_ = ClusterState();
  JobSpec spec;
  spec.kind = JobKind::kOnDemand;
  Feed(RequestRefused{spec, {.feasible = false}, ""});
  EXPECT_EQ(Sum().refused, 1);
}

}  // namespace
}  // namespace siding
