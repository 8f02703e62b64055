// Images go where there is room, a tier that does not take one is to blame itself, and a method comes back.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::IsEmpty;
using testing::Key;

class TierRoomTest : public EngineTest {
 protected:
  TierRoomTest() {
    policy_.min_runtime = policy_.cooldown = 0s;
    cluster_.shared_bytes_per_second = 2e9;  // else the local tier is the better one
    StartController();
  }
  JobId Start(MethodSet methods = {Method::kCheckpoint}) {
    const JobId job = Submit(Batch(1, methods));
    Settle();
    EXPECT_EQ(State(job), JobState::kRunning);
    return job;
  }
  // Its agent says every second what is free.
  void SettleWithHeartbeats(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Heartbeat("a");
      Settle(1);
    }
  }
  void SaveTo(JobId job, Tier tier) {
    ASSERT_TRUE(engine_->Checkpoint(kAda, job, tier).ok());
    Settle();
  }
  Tier TierOf(const std::string& id) {
    Tier tier{};
    engine_->Read([&](const ClusterState& s) { tier = s.checkpoints.at(CheckpointId(id)).tier; });
    return tier;
  }
  std::string Refusal(JobSpec spec) {
    return std::string(engine_->Submit(kAda, std::move(spec)).status().message());
  }
  int Said(const std::string& text) {
    int said = 0;
    for (const Event& event : engine_->EventsAfter(0, 1000, Duration(0)))
      said += Describe(event).find(text) != std::string::npos;
    return said;
  }
  int Dumps() const { return cluster_.Count(v1::ToAgent::kDump); }
};

// ---- A tier that does not take an image. ----

TEST_F(TierRoomTest, ItCostsTheJobNoMethod) {
  AddNodes({"a"});
  const JobId job = Start();
  cluster_.fail_shared = {"a"};
  SaveTo(job, Tier::kShared);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_THAT(Job(job).lost_methods, IsEmpty());
  EXPECT_EQ(Said("could not be checkpointed and continues: rank 0 on a: checkpoint store /shared"), 1);
  EXPECT_EQ(Dumps(), 1) << "a second would be in vain";
}

TEST_F(TierRoomTest, TheImageGoesToTheLocalTierInstead) {
  AddNodes({"a"});
  const JobId job = Start();
  cluster_.fail_shared = {"a"};
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_EQ(State(request), JobState::kRunning);
  EXPECT_EQ(State(job), JobState::kParked);
  EXPECT_EQ(TierOf("1.2"), Tier::kLocal);
  EXPECT_EQ(Said("checkpoint 1.1 to shared storage ordered"), 1);
}

TEST_F(TierRoomTest, OrAnotherJobMakesWay) {
  AddNodes({"a", "b"});
  const JobId one = Start(), other = Start({Method::kKill});
  cluster_.local_disk_free = 0;
  cluster_.Heartbeat("a");
  cluster_.fail_shared = {"a"};
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_EQ(State(request), JobState::kRunning);
  EXPECT_EQ(State(one), JobState::kRunning);
  EXPECT_EQ(State(other), JobState::kPending);
}

TEST_F(TierRoomTest, ARefusalSaysWhy) {
  AddNodes({"a"});
  const JobId job = Start();
  cluster_.local_disk_free = 0;
  cluster_.Heartbeat("a");
  cluster_.fail_shared = {"a"};
  SaveTo(job, Tier::kShared);
  EXPECT_THAT(Refusal(OnDemand(1)),
              AllOf(HasSubstr("tier local on node a is full: 0 B free"),
                    HasSubstr("tier shared on node a: it did not take its last image")));
}

TEST_F(TierRoomTest, TheNextHeartbeatThatSaysWhatIsFreeEndsIt) {
  AddNodes({"a"});
  const JobId job = Start();
  cluster_.fail_shared = {"a"};
  SaveTo(job, Tier::kShared);
  cluster_.fail_shared.clear();
  cluster_.Heartbeat("a");
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_EQ(State(request), JobState::kRunning);
  EXPECT_EQ(TierOf("1.2"), Tier::kShared);
}

TEST_F(TierRoomTest, WhereItFailsThoughItSaysThatThereIsRoomItIsTriedMoreAndMoreSeldom) {
  policy_.when_late = WhenLate::kBestEffort;
  StartController();
  AddNodes({"a"});
  const JobId job = Start();
  cluster_.local_disk_free = 0;
  cluster_.Heartbeat("a");
  cluster_.fail_shared = {"a"};
  Submit(OnDemand(1));
  SettleWithHeartbeats(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_GT(Dumps(), 2);
  EXPECT_LT(Dumps(), 8);
  cluster_.fail_shared.clear();
  SettleWithHeartbeats(60);
  EXPECT_EQ(State(job), JobState::kParked);
}

TEST_F(TierRoomTest, AFrozenJobIsNotMovedByATierThatTakesNothing) {
  AddNodes({"a", "b"});
  const JobId victim = Start({Method::kSuspend, Method::kCheckpoint});
  const JobId other = Start({});
  JobSpec spec = OnDemand(1);
  spec.hold = 2h;
  const JobId request = Submit(spec);
  Settle();
  ASSERT_EQ(State(request), JobState::kRunning);
  ASSERT_EQ(State(victim), JobState::kSuspended);
  cluster_.shared_disk_free = 0;
  cluster_.Heartbeat("a");
  cluster_.fail_shared = {"a"};
  cluster_.Exit(other, 0, 0);
  SettleWithHeartbeats(10);
  EXPECT_EQ(State(victim), JobState::kSuspended);
  EXPECT_EQ(Dumps(), 0);
  cluster_.fail_shared.clear();
  cluster_.shared_disk_free = 100LL << 30;
  SettleWithHeartbeats(10);
  EXPECT_EQ(Job(victim).nodes, std::vector{NodeId("b")});
}

// ---- What is free. ----

TEST_F(TierRoomTest, NothingIsSentToATierThatIsFull) {
  AddNodes({"a"});
  Start();
  cluster_.shared_disk_free = cluster_.memory - 1;
  cluster_.Heartbeat("a");
  const JobId request = Submit(OnDemand(1));
  Settle();
  EXPECT_EQ(State(request), JobState::kRunning);
  EXPECT_EQ(Dumps(), 1);
  EXPECT_EQ(TierOf("1.1"), Tier::kLocal);
}

class UnderWayTest : public TierRoomTest {
 protected:
  // Two jobs, one of which is being dumped, and room for one and a half images.
  void Begin(Tier tier) {
    AddNodes({"a", "b"});
    const JobId one = Start();
    Start();
    (tier == Tier::kShared ? cluster_.shared_disk_free : cluster_.local_disk_free) = cluster_.memory * 3 / 2;
    (tier == Tier::kShared ? cluster_.local_disk_free : cluster_.shared_disk_free) = 0;
    const std::string node = Job(one).nodes[0].value();
    for (const char* name : {"a", "b"}) cluster_.Heartbeat(name);
    cluster_.slow_dump = {node};
    SaveTo(one, tier);
    ASSERT_EQ(State(one), JobState::kDumping);
    one_ = one;
  }
  bool IsTaken() { return engine_->Submit(kAda, OnDemand(1)).ok(); }

  JobId one_;
};

TEST_F(UnderWayTest, WhatIsOrderedAndNotYetWrittenTakesRoom) {
  Begin(Tier::kShared);
  EXPECT_THAT(Refusal(OnDemand(1)),
              HasSubstr("tier shared on node b is full: 512.0 KiB free, 1.0 MiB needed"));
}

TEST_F(UnderWayTest, WhatIsWrittenShowsInWhatIsFree) {
  Begin(Tier::kShared);
  cluster_.Progress(one_, cluster_.memory, cluster_.memory, 1e6);
  EXPECT_TRUE(IsTaken());
}

TEST_F(UnderWayTest, InALocalTierItTakesNoneFromOtherNodes) {
  Begin(Tier::kLocal);
  EXPECT_TRUE(IsTaken());
}

TEST_F(TierRoomTest, ACheckpointOnScheduleWaitsForRoom) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.checkpoint_interval = 10s;
  const JobId job = Submit(spec);
  cluster_.shared_disk_free = 0;
  SettleWithHeartbeats(30);
  EXPECT_EQ(Dumps(), 0);
  EXPECT_EQ(Said("is not checkpointed on schedule: tier shared on node a is full"), 1);
  cluster_.shared_disk_free = 1LL << 30;
  SettleWithHeartbeats(12);
  EXPECT_EQ(Job(job).checkpoints.size(), 1u);
}

TEST_F(TierRoomTest, AnImageInAdvanceThatCannotBeWrittenIsPlannedAgain) {
  policy_.margin = 0s;
  StartController();
  AddNodes({"a"});
  cluster_.memory = 40LL << 30;  // takes longer than there is between arrival and deadline
  const JobId job = Start({Method::kCheckpoint, Method::kKill});
  cluster_.fail_shared = {"a"};
  JobSpec spec = OnDemand(1, 300s);
  spec.not_before = spec.start_by - 11s;
  const JobId request = Submit(spec);
  ASSERT_TRUE(Job(request).plans.back().steps.at(0).early);
  while (Dumps() == 0) SettleWithHeartbeats(1);
  cluster_.fail_shared.clear();
  SettleWithHeartbeats(5);
  EXPECT_THAT(Job(job).checkpoints, Contains(CheckpointId("1.2")));
}

// ---- A method that has failed for another reason. ----

class MethodBackTest : public TierRoomTest {
 protected:
  JobId StartAndFail() {
    AddNodes({"a"});
    const JobId job = Start();
    cluster_.fail_dump = {"a"};
    SaveTo(job, Tier::kShared);
    EXPECT_THAT(Job(job).methods_back_at, Contains(Key(Method::kCheckpoint)));
    return job;
  }
};

TEST_F(MethodBackTest, NoImageIsTakenInAdvanceBeforeThatAndNoPlanMadeAgainAndAgain) {
  policy_.margin = 0s;
  StartController();
  cluster_.memory = 40LL << 30;  // takes longer than there is between arrival and deadline
  AddNodes({"a"});
  const JobId job = Start({Method::kCheckpoint, Method::kKill});
  cluster_.fail_dump = {"a"};
  SaveTo(job, Tier::kShared);
  const Time back = Job(job).methods_back_at.at(Method::kCheckpoint);
  JobSpec spec = OnDemand(1);
  spec.not_before = back + 20s;
  spec.start_by = spec.not_before + 11s;
  const JobId request = Submit(spec);
  SettleWithHeartbeats(30);
  EXPECT_LE(Job(request).plans.size(), 2u);
}

TEST_F(MethodBackTest, ACheckpointThatSucceedsBringsItBack) {
  const JobId job = StartAndFail();
  cluster_.fail_dump.clear();
  SaveTo(job, Tier::kShared);
  EXPECT_THAT(Job(job).lost_methods, IsEmpty());
}

TEST_F(MethodBackTest, ARequestForWhichItIsBackInTimeIsTaken) {
  const JobId job = StartAndFail();
  EXPECT_THAT(Refusal(OnDemand(1, 60s)),
              HasSubstr(FormatTime(Job(job).methods_back_at[Method::kCheckpoint])));
  const JobId request = Submit(OnDemand(1, 15min));
  cluster_.fail_dump.clear();
  SettleWithHeartbeats(60);
  EXPECT_EQ(State(job), JobState::kRunning);
  SettleWithHeartbeats(600);
  EXPECT_EQ(State(request), JobState::kRunning);
}

}  // namespace
}  // namespace siding
