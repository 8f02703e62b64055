// Images on nodes' own disks come into shared storage behind their jobs, and stop tying them to these nodes.
#include "absl/strings/str_format.h"
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;

class CopiedImagesTest : public EngineTest {
 protected:
  CopiedImagesTest() { AddNodes({"a", "b"}); }

  // It has left node a by an image on that node's disk, and is held so that it stays away.
  JobId Parked(int nodes = 1) {
    const JobId job = Running(nodes);
    EXPECT_TRUE(engine_->Vacate(kAda, job, Tier::kLocal).ok());
    EXPECT_TRUE(engine_->Hold(kAda, job).ok());
    Settle();
    EXPECT_EQ(State(job), JobState::kParked);
    return job;
  }
  JobId Running(int nodes = 1) {
    const JobId job = Submit(Batch(nodes));
    Settle();
    EXPECT_EQ(State(job), JobState::kRunning);
    return job;
  }
  void CopiesComeTo(absl::StatusCode code) { cluster_.copies = {{"a", code}, {"b", code}}; }
  CheckpointRecord Image(JobId job) {
    CheckpointRecord image;
    engine_->Read([&](const ClusterState& state) {
      image = state.checkpoints.at(state.jobs.at(job).checkpoints.back());
    });
    return image;
  }
  int Copies() const { return cluster_.Count(v1::ToAgent::kCopy); }
  std::vector<std::string> Kinds(JobId job) {
    std::vector<std::string> kinds;
    for (const Event& event : engine_->EventsAfter(0, 10'000, 0s)) {
      if (event.job == job && std::holds_alternative<CopiesChanged>(event.body))
        kinds.push_back(KindOf(event));
    }
    return kinds;
  }
};

TEST_F(CopiedImagesTest, TheImageOfAParkedJobIsCopied) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  EXPECT_EQ(Image(job).tier, Tier::kShared);
  EXPECT_EQ(Image(job).copies, NodeCopies::kUsed);
  EXPECT_THAT(Kinds(job), ElementsAre("checkpoint-copied"));
}

TEST_F(CopiedImagesTest, TheOrderNamesTheImage) {
  const JobId job = Parked();
  const v1::CopyCheckpoint order = cluster_.Last(v1::ToAgent::kCopy).copy();
  EXPECT_EQ(order.checkpoint(), Image(job).id.value());
  EXPECT_EQ(order.image_digest(), Image(job).DigestOf(0));
  EXPECT_EQ(order.base(), "");
}

TEST_F(CopiedImagesTest, AnEarlierImageInSharedStorageIsItsBase) {
  const JobId job = Running();
  const auto earlier = engine_->Checkpoint(kAda, job, Tier::kShared);
  ASSERT_TRUE(earlier.ok());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kCopy).copy().base(), earlier->value());
}

TEST_F(CopiedImagesTest, TheImageOfAJobThatRunsOnIsCopied) {
  CopiesComeTo(kOk);
  const JobId job = Running();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

TEST_F(CopiedImagesTest, ByThePolicyNothingIsCopied) {
  policy_.copy_images = false;
  StartController();
  AddNodes({"a", "b"});
  Parked();
  EXPECT_EQ(Copies(), 0);
}

TEST_F(CopiedImagesTest, WhereThereIsNoSharedTierNothingIsCopied) {
  cluster_.shared_bytes_per_second = 0;
  for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
  Parked();
  EXPECT_EQ(Copies(), 0);
}

TEST_F(CopiedImagesTest, WithoutRoomNothingIsCopied) {
  const JobId job = Running();
  cluster_.shared_disk_free = 1000;
  for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(Copies(), 0);
}

TEST_F(CopiedImagesTest, ItIsAskedForOnceAMinute) {
  Parked();
  Settle(30);
  EXPECT_EQ(Copies(), 1);
  Settle(40);
  EXPECT_EQ(Copies(), 2);
}

TEST_F(CopiedImagesTest, AnAgentThatWasStartedAgainIsAskedAtOnce) {
  Parked();
  cluster_.Disconnect("a");
  cluster_.Restart("a");
  Settle();
  EXPECT_EQ(Copies(), 2);
}

TEST_F(CopiedImagesTest, AfterAFailureItIsTriedAgainSooner) {
  CopiesComeTo(absl::StatusCode::kUnavailable);
  const JobId job = Parked();
  Settle(10);
  EXPECT_GE(Copies(), 3);
  EXPECT_EQ(Image(job).tier, Tier::kLocal);
  CopiesComeTo(kOk);
  Settle(20);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

TEST_F(CopiedImagesTest, WhatIsFoundDamagedOnTheWayDoesNotCountAnyMore) {
  CopiesComeTo(absl::StatusCode::kDataLoss);
  const JobId job = Running();
  const auto image = engine_->Checkpoint(kAda, job, Tier::kLocal);
  ASSERT_TRUE(image.ok());
  Settle();
  engine_->Read([&](const ClusterState& state) {
    EXPECT_EQ(state.checkpoints.at(*image).state, CheckpointState::kDamaged);
  });
}

TEST_F(CopiedImagesTest, AGangsCheckpointCountsThereWhenAllRanksAre) {
  cluster_.copies = {{"a", kOk}};
  const JobId job = Parked(2);
  EXPECT_EQ(Image(job).tier, Tier::kLocal);
  CopiesComeTo(kOk);
  Settle(70);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

TEST_F(CopiedImagesTest, ARankThatHadEndedHasNone) {
  CopiesComeTo(kOk);
  const JobId job = Running(2);
  cluster_.Exit(job, 1, 0);
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  EXPECT_EQ(Copies(), 1);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

// Of 20 jobs on as many nodes, whose images are copied in the order of the jobs; and sixteen at once.
class ManyCopiesTest : public CopiedImagesTest {
 protected:
  void ComesToAfterSixteen(const std::map<std::string, absl::StatusCode>& copies) {
    for (int i = 0; i < 20; ++i) cluster_.AddNode(NodeOf(i));
    for (const char* node : {"a", "b"}) EXPECT_TRUE(engine_->Cordon(kRoot, NodeId(node), true).ok());
    for (int i = 0; i < 20; ++i) jobs_.push_back(Running());
    for (const JobId job : jobs_) EXPECT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
    cluster_.copies = copies;
    Settle(240);
  }
  static std::string NodeOf(int number) { return absl::StrFormat("n%02d", number); }
  bool IsCopied(int number) { return Image(jobs_[static_cast<size_t>(number)]).tier == Tier::kShared; }

  std::vector<JobId> jobs_;
};

TEST_F(ManyCopiesTest, ThoseThatFailKeepNoOthersFromTheirTurn) {
  std::map<std::string, absl::StatusCode> copies;
  for (int i = 0; i < 20; ++i) copies[NodeOf(i)] = i < 17 ? absl::StatusCode::kInternal : kOk;
  ComesToAfterSixteen(copies);
  EXPECT_FALSE(IsCopied(0));
  EXPECT_TRUE(IsCopied(19));
}

TEST_F(ManyCopiesTest, NorDoThoseWhoseAgentsDoNotAnswer) {
  std::map<std::string, absl::StatusCode> copies;
  for (int i = 17; i < 20; ++i) copies[NodeOf(i)] = kOk;
  ComesToAfterSixteen(copies);
  EXPECT_FALSE(IsCopied(0));
  EXPECT_TRUE(IsCopied(19));
}

TEST_F(CopiedImagesTest, ANewControllerAsksAgain) {
  cluster_.copies = {{"a", kOk}};
  const JobId job = Parked(2);
  StartController();
  AddNodes({"a", "b"});
  CopiesComeTo(kOk);
  Settle(20);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

// ---- What it is good for. ----

TEST_F(CopiedImagesTest, TheJobIsRestoredElsewhere) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_THAT(Job(job).nodes, ElementsAre(NodeId("b")));
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().tier(), v1::SHARED);
}

TEST_F(CopiedImagesTest, OnItsOwnNodeItIsRestoredFromThatNodesDisk) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_THAT(Job(job).nodes, ElementsAre(NodeId("a")));
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().tier(), v1::LOCAL);
}

TEST_F(CopiedImagesTest, TheLossOfItsNodeDoesNotMatterAnyMore) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_THAT(Job(job).nodes, ElementsAre(NodeId("b")));
}

TEST_F(CopiedImagesTest, WhereThatNodesDiskIsDamagedTheOtherImageIsTaken) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.damaged_disks = {"a"};
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().tier(), v1::SHARED);
  EXPECT_THAT(Kinds(job), ElementsAre("checkpoint-copied", "copies-unwanted", "copies-gone"));
}

TEST_F(CopiedImagesTest, DamageThatANodeFindsOnItsDiskCostsTheImageThereOnly) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.FindDamaged("a", Image(job).id.value(), 0, v1::LOCAL);
  Settle();
  EXPECT_EQ(Image(job).state, CheckpointState::kGood);
  EXPECT_EQ(Image(job).copies, NodeCopies::kNone);
}

TEST_F(CopiedImagesTest, AnotherNodeHasNothingToSayOfIt) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.FindDamaged("b", Image(job).id.value(), 0, v1::LOCAL);
  Settle();
  EXPECT_EQ(Image(job).copies, NodeCopies::kUsed);
}

TEST_F(CopiedImagesTest, DamageInSharedStorageCostsTheImageThereOnlyAndItIsCopiedAgain) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.copies.clear();
  const int copies = Copies();
  cluster_.FindDamaged("a", Image(job).id.value());
  cluster_.Heartbeat("a");
  Settle();
  EXPECT_EQ(Image(job).state, CheckpointState::kGood);
  EXPECT_EQ(Image(job).tier, Tier::kLocal);
  EXPECT_GT(Copies(), copies);
  EXPECT_THAT(Kinds(job), ElementsAre("checkpoint-copied", "copy-damaged"));
}

TEST_F(CopiedImagesTest, DamageThatARestoreElsewhereFindsCostsTheImageInSharedStorageOnly) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.copies.clear();
  cluster_.damaged_shared = true;
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_EQ(Image(job).state, CheckpointState::kGood);
  EXPECT_EQ(Image(job).tier, Tier::kLocal);
  EXPECT_EQ(Job(job).damaged_checkpoints, 1);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_THAT(Job(job).nodes, ElementsAre(NodeId("a")));
}

TEST_F(CopiedImagesTest, WhileAJobIsRestoredFromItTheNodesWordIsNotNeeded) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  clock_.Advance(1s);
  engine_->Tick();
  ASSERT_EQ(State(job), JobState::kRestoring);
  cluster_.FindDamaged("a", Image(job).id.value());
  EXPECT_EQ(Image(job).copies, NodeCopies::kUsed);
}

TEST_F(CopiedImagesTest, ARestoreThatFailedOnItsOwnNodeReadsSharedStorageTheNextTime) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("b"), true).ok());
  cluster_.fail_restore = {"a"};
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  cluster_.fail_restore.clear();
  Settle(20);
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().tier(), v1::SHARED);
  EXPECT_EQ(Image(job).copies, NodeCopies::kUsed) << "it may be as good";
}

TEST_F(CopiedImagesTest, WhereTheNodeIsLostDamageInSharedStorageIsDamage) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
  cluster_.damaged = {image.value()};
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  engine_->Read([&](const ClusterState& state) {
    EXPECT_EQ(state.checkpoints.at(image).state, CheckpointState::kDamaged);
  });
}

// ---- In the memory of a node that restarts. ----

class ImagesInMemoryTest : public CopiedImagesTest {
 protected:
  ImagesInMemoryTest() { cluster_.in_memory = {{"a", {}}, {"b", {}}}; }
  // With these images in its memory.
  void ComeBack(const std::string& node, std::set<std::pair<CheckpointId, int>> images = {}) {
    cluster_.in_memory[node] = std::move(images);
    cluster_.Disconnect(node);
    cluster_.Restart(node);
    Settle();
  }
  CheckpointState StateOf(const CheckpointId& id) {
    CheckpointState found{};
    engine_->Read([&](const ClusterState& state) { found = state.checkpoints.at(id).state; });
    return found;
  }
  void NoSharedTier() {
    cluster_.has_shared = false;
    cluster_.shared_bytes_per_second = 0;
    for (const char* node : {"a", "b"}) cluster_.Disconnect(node);
    for (const char* node : {"a", "b"}) cluster_.Restart(node);
    Settle();
  }
};

TEST_F(ImagesInMemoryTest, AnImageThatIsNowhereAnyMoreDoesNotCount) {
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  CopiesComeTo(absl::StatusCode::kNotFound);
  ComeBack("a");
  EXPECT_THAT(StateOf(image), testing::AnyOf(CheckpointState::kDeleted, CheckpointState::kGone));
}

TEST_F(ImagesInMemoryTest, WhereThereIsNoSharedTierNobodyIsAsked) {
  NoSharedTier();
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  ComeBack("a");
  EXPECT_THAT(StateOf(image), testing::AnyOf(CheckpointState::kDeleted, CheckpointState::kGone));
  EXPECT_EQ(Copies(), 0);
}

// Its node has copied it, and the answer was lost.
TEST_F(ImagesInMemoryTest, OneThatIsFoundInSharedStorageCounts) {
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  CopiesComeTo(kOk);
  ComeBack("a");
  EXPECT_EQ(StateOf(image), CheckpointState::kGood);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
}

TEST_F(ImagesInMemoryTest, WhileSharedStorageIsAwayItCounts) {
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  CopiesComeTo(absl::StatusCode::kUnavailable);
  ComeBack("a");
  EXPECT_EQ(StateOf(image), CheckpointState::kGood);
}

TEST_F(ImagesInMemoryTest, UntilTheNodeHasSaidItsJobIsNotRestoredFromIt) {
  const JobId job = Parked();
  cluster_.in_memory["a"] = {};
  cluster_.Disconnect("a");
  cluster_.Restart("a");
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  EXPECT_EQ(State(job), JobState::kParked);
}

TEST_F(ImagesInMemoryTest, OfAGangOneRankIsEnough) {
  const JobId job = Parked(2);
  const CheckpointId image = Image(job).id;
  CopiesComeTo(absl::StatusCode::kNotFound);
  ComeBack("b");
  EXPECT_THAT(StateOf(image), testing::AnyOf(CheckpointState::kDeleted, CheckpointState::kGone));
}

TEST_F(ImagesInMemoryTest, ItsJobGoesBackToTheOneBefore) {
  const JobId job = Running();
  const auto earlier = engine_->Checkpoint(kAda, job, Tier::kShared);
  Settle();
  ASSERT_TRUE(engine_->Vacate(kAda, job, Tier::kLocal).ok());
  ASSERT_TRUE(engine_->Hold(kAda, job).ok());
  Settle();
  ASSERT_EQ(State(job), JobState::kParked);
  CopiesComeTo(absl::StatusCode::kNotFound);
  ComeBack("a");
  ASSERT_TRUE(engine_->Release(kAda, job).ok());
  Settle();
  EXPECT_EQ(State(job), JobState::kRunning);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kRestore).restore().checkpoint(), earlier->value());
}

TEST_F(ImagesInMemoryTest, OneThatIsStillThereCounts) {
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  CopiesComeTo(absl::StatusCode::kNotFound);
  ComeBack("a", {{image, 0}});
  EXPECT_EQ(StateOf(image), CheckpointState::kGood);
}

// A list may be older than it; the one after is not.
TEST_F(ImagesInMemoryTest, OneThatWasMadeSinceTheLastListIsJudgedByTheNextButOne) {
  NoSharedTier();
  ComeBack("a");
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  cluster_.SayKept("a");
  EXPECT_EQ(StateOf(image), CheckpointState::kGood);
  cluster_.SayKept("a");
  Settle();
  EXPECT_THAT(StateOf(image), testing::AnyOf(CheckpointState::kDeleted, CheckpointState::kGone));
}

TEST_F(ImagesInMemoryTest, ANodeThatNamesNoneHasItsTierOnADisk) {
  NoSharedTier();
  const JobId job = Parked();
  cluster_.in_memory.clear();
  cluster_.Disconnect("a");
  cluster_.Restart("a");
  Settle();
  EXPECT_EQ(StateOf(Image(job).id), CheckpointState::kGood);
}

TEST_F(ImagesInMemoryTest, WhatIsInSharedStorageAsWellIsLeftThere) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  ASSERT_EQ(Image(job).copies, NodeCopies::kUsed);
  ComeBack("a");
  EXPECT_EQ(StateOf(Image(job).id), CheckpointState::kGood);
  EXPECT_EQ(Image(job).tier, Tier::kShared);
  EXPECT_THAT(Kinds(job), testing::Contains("copies-unwanted"));
}

// ---- What is not needed on nodes any more. ----

TEST_F(CopiedImagesTest, WithANewerImageTheOneOnTheDiskGoes) {
  CopiesComeTo(kOk);
  const JobId job = Running();
  const auto first = engine_->Checkpoint(kAda, job, Tier::kLocal);
  ASSERT_TRUE(first.ok());
  Settle();
  ASSERT_TRUE(engine_->Checkpoint(kAda, job, Tier::kLocal).ok());
  Settle();
  engine_->Read([&](const ClusterState& state) {
    EXPECT_EQ(state.checkpoints.at(*first).copies, NodeCopies::kNone);
    EXPECT_EQ(state.checkpoints.at(*first).state, CheckpointState::kGood);
  });
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kDelete).delete_().tier(), v1::LOCAL);
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kDelete).delete_().copy_too());
}

TEST_F(CopiedImagesTest, OnAFullDiskItGoes) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  cluster_.local_disk_free = 1000;
  cluster_.Heartbeat("a");
  Settle();
  EXPECT_EQ(Image(job).copies, NodeCopies::kNone);
}

TEST_F(CopiedImagesTest, WithItsJobBothGo) {
  CopiesComeTo(kOk);
  const JobId job = Parked();
  const CheckpointId image = Image(job).id;
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle(10);
  engine_->Read([&](const ClusterState& state) {
    EXPECT_EQ(state.checkpoints.at(image).state, CheckpointState::kGone);
    EXPECT_THAT(state.copied, IsEmpty());
  });
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kDelete), 2);
}

TEST_F(CopiedImagesTest, OneThatIsDeletedWhileItIsCopiedGoesFromBothTiers) {
  const JobId job = Parked();
  ASSERT_TRUE(engine_->Kill(kAda, job).ok());
  Settle(10);
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kDelete).delete_().copy_too());
}

TEST_F(CopiedImagesTest, WhatALostNodeMayHaveCopiedIsDeletedByAnother) {
  const JobId job = Parked();
  cluster_.Disconnect("a");
  ASSERT_TRUE(engine_->Lose(kRoot, NodeId("a")).ok());
  Settle();
  const v1::DeleteCheckpoint order = cluster_.Last(v1::ToAgent::kDelete).delete_();
  EXPECT_EQ(order.tier(), v1::SHARED);
  EXPECT_FALSE(order.copy_too());
  EXPECT_EQ(order.checkpoint(), absl::StrCat(job.value(), ".1"));
}

// ---- Who has the way to shared storage. ----

TEST_F(CopiedImagesTest, WhileADeadlineWaitsForItACopyPauses) {
  AddNodes({"c"});
  cluster_.slow_dump = {"b", "c"};
  const JobId job = Parked();
  cluster_.local_disk_free = 0;  // so that it is shared storage that the deadline waits for
  for (const char* node : {"b", "c"}) cluster_.Heartbeat(node);
  const JobId victim = Submit(Batch(2, {Method::kCheckpoint}));
  Settle();
  ASSERT_EQ(State(victim), JobState::kRunning);
  ASSERT_FALSE(cluster_.Last(v1::ToAgent::kCopy).copy().pause());
  const JobId request = Submit(OnDemand(3));
  Settle();
  ASSERT_EQ(State(victim), JobState::kDumping);
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kCopy).copy().pause());
  EXPECT_EQ(Image(job).tier, Tier::kLocal);
  ASSERT_TRUE(engine_->Kill(kAda, request).ok());
  Settle();
  EXPECT_FALSE(cluster_.Last(v1::ToAgent::kCopy).copy().pause());
}

TEST_F(CopiedImagesTest, TheVictimsOwnCopyPausesWhileItIsDumped) {
  cluster_.slow_dump = {"a"};
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  cluster_.slow_dump.clear();
  ASSERT_TRUE(engine_->Checkpoint(kAda, victim, Tier::kLocal).ok());
  Settle();
  const std::string image = Image(victim).id.value();
  const std::string node = Job(victim).nodes[0].value();
  cluster_.copying = {{node, image}};
  cluster_.local_disk_free = 0;
  cluster_.slow_dump = {"a", "b"};
  for (const char* name : {"a", "b"}) cluster_.Heartbeat(name);
  Settle();
  Submit(OnDemand(2));
  Settle();
  ASSERT_EQ(State(victim), JobState::kDumping);
  EXPECT_EQ(cluster_.Last(v1::ToAgent::kCopy).copy().checkpoint(), image);
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kCopy).copy().pause());
}

TEST_F(CopiedImagesTest, ANewControllerHasWhatIsUnderWayPause) {
  const JobId job = Parked();
  cluster_.copying = {{"a", Image(job).id.value()}};
  cluster_.local_disk_free = 0;
  cluster_.slow_dump = {"a", "b"};
  for (const char* node : {"a", "b"}) cluster_.Heartbeat(node);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), true).ok());
  const JobId victim = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  ASSERT_EQ(State(victim), JobState::kRunning);
  ASSERT_TRUE(engine_->Cordon(kRoot, NodeId("a"), false).ok());
  Submit(OnDemand(2, 600s));
  Settle();
  ASSERT_EQ(State(victim), JobState::kDumping);
  StartController();
  for (const char* node : {"a", "b"}) cluster_.Connect(node);
  Settle(20);
  ASSERT_EQ(State(victim), JobState::kDumping);
  EXPECT_TRUE(cluster_.Last(v1::ToAgent::kCopy).copy().pause());
}

}  // namespace
}  // namespace siding
