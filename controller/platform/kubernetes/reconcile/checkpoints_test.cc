#include "controller/platform/kubernetes/reconcile/checkpoints.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/platform/kubernetes/reconcile/objects_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

const ObjectName kName{"d", "kubernetes-7.1"};
constexpr Duration kAWhile = std::chrono::seconds(10);

CheckpointView DurableOne(int number = 1) {
  CheckpointView view;
  view.id = CheckpointId("kubernetes-7." + std::to_string(number));
  view.job = JobId(7);
  view.pod = {"d", "train-abc"};
  view.owner = {"Job", "train", "uid-of-train"};
  view.phase = CheckpointPhase::kDurable;
  view.bytes = Bytes{3 << 20};
  view.nodes = {NodeId("n1")};
  view.made = Time(std::chrono::seconds(1'000'000'000));
  return view;
}

FakeApiServer::Settings Having(bool checkpoints) {
  FakeApiServer::Settings settings{.resources = {Pods(), OnDemandRequests()}};
  if (checkpoints) settings.resources.push_back(Checkpoints());
  return settings;
}

class CheckpointObjectsTest : public ObjectsTest {
 protected:
  explicit CheckpointObjectsTest(bool served = true) : ObjectsTest(Having(served)) { Restart(); }
  // As a controller that has just started.
  void Restart() {
    objects_.reset();
    objects_.emplace(
        transport_, pacer_, clock_, "siding",
        CheckpointObjects::Sources{
            [this] { return wanted_; }, [this] { Wake(); },
            [this](const std::string& target, const std::string& action, const absl::Status& status) {
              log_.push_back(target + ": " + action +
                             (status.ok() ? "" : ": " + std::string(status.message())));
              return status.ok();
            }});
  }
  // Rounds, until what they do is done and told: an object that nobody wants goes when it was seen.
  void Settle() {
    for (int i = 0; i < 4; ++i) {
      const ObjectName last = Last();
      Put(last, {{"metadata", {{"labels", {{kWriterLabel, "siding"}}}}}});
      RoundsUntil([&] { objects_->Round(client_); }, [&] { return !IsThere(last); });
    }
  }
  void Put(const ObjectName& name, const Json& object) { ObjectsTest::Put("checkpoints", name, object); }
  void Remove(const ObjectName& name) { ObjectsTest::Remove("checkpoints", name); }
  bool IsThere(const ObjectName& name = kName) { return client_.Get(Checkpoints(), name).ok(); }
  Json Now(const ObjectName& name = kName) { return *client_.Get(Checkpoints(), name)->json; }
  std::string Phase(const ObjectName& name = kName) { return TextAt(Now(name), {"status", "phase"}); }

  std::vector<CheckpointView> wanted_;
  std::optional<CheckpointObjects> objects_;  // last: it uses the others
};

class NoCheckpointsTest : public CheckpointObjectsTest {
 protected:
  NoCheckpointsTest() : CheckpointObjectsTest(false) {}
};

TEST_F(NoCheckpointsTest, AServerThatHasNoneIsAskedNowAndThen) {
  wanted_ = {DurableOne()};
  for (int i = 0; i < 3; ++i) objects_->Round(client_);
  EXPECT_THAT(transport_.asked(), ElementsAre("GET /apis/siding.dev/v1alpha1"));
  clock_.Advance(std::chrono::seconds(30));
  objects_->Round(client_);
  EXPECT_THAT(transport_.asked(), SizeIs(2));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(CheckpointObjectsTest, AnImageHasAnObject) {
  wanted_ = {DurableOne()};
  Settle();
  EXPECT_EQ(Now()["status"], Json({{"phase", "Durable"},
                                   {"durable", true},
                                   {"job", 7},
                                   {"owner", "Job/train"},
                                   {"pod", "train-abc"},
                                   {"size", "3.0 MiB"},
                                   {"bytes", 3 << 20},
                                   {"tier", "shared"},
                                   {"node", "n1"},
                                   {"made", "2001-09-09T01:46:40Z"}}));
}
TEST_F(CheckpointObjectsTest, ItGoesWithTheOwnerOfThePod) {
  wanted_ = {DurableOne()};
  Settle();
  EXPECT_EQ(Now()["metadata"]["ownerReferences"],
            Json::array(
                {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "train"}, {"uid", "uid-of-train"}}}));
}
TEST_F(CheckpointObjectsTest, OneThatIsBeingMadeHasNoSize) {
  wanted_ = {DurableOne()};
  wanted_[0].phase = CheckpointPhase::kMaking;
  Settle();
  EXPECT_EQ(Phase(), "Making");
  EXPECT_EQ(Now()["status"]["durable"], false);
  EXPECT_FALSE(Now()["status"].contains("size"));
}
TEST_F(CheckpointObjectsTest, WhatBecomesOfItIsWritten) {
  wanted_ = {DurableOne()};
  Settle();
  wanted_[0].phase = CheckpointPhase::kDamaged;
  wanted_[0].note = "pages-1.img";
  Settle();
  EXPECT_EQ(Phase(), "Damaged");
  EXPECT_EQ(Now()["status"]["durable"], false);
  EXPECT_EQ(Now()["status"]["reason"], "pages-1.img");
}
TEST_F(CheckpointObjectsTest, NothingIsWrittenWhileNothingChanges) {
  wanted_ = {DurableOne()};
  Settle();
  const int64_t written = CountAsked("PATCH") + CountAsked("POST");
  clock_.Advance(std::chrono::hours(1));
  Settle();
  EXPECT_EQ(CountAsked("PATCH") + CountAsked("POST"), written);
}
TEST_F(CheckpointObjectsTest, OneWithoutAnImageGoes) {
  wanted_ = {DurableOne()};
  Settle();
  wanted_.clear();
  Settle();
  EXPECT_FALSE(IsThere());
}
TEST_F(CheckpointObjectsTest, WhatAControllerOfBeforeHasLeftGoes) {
  wanted_ = {DurableOne()};
  Settle();
  wanted_.clear();
  Restart();
  Settle();
  EXPECT_FALSE(IsThere());
}
TEST_F(CheckpointObjectsTest, OneThatAUserDeletesIsWrittenAgain) {
  wanted_ = {DurableOne()};
  Settle();
  clock_.Advance(kAWhile);
  Remove(kName);
  Settle();
  EXPECT_EQ(Phase(), "Durable");
}
// So does the garbage collector while its owner goes.
TEST_F(CheckpointObjectsTest, OneThatIsDeletedAtOnceIsWrittenAgainAfterAWhile) {
  wanted_ = {DurableOne()};
  Settle();
  Remove(kName);
  Settle();
  EXPECT_FALSE(IsThere());
  EXPECT_EQ(CountAsked("POST"), 1);
  clock_.Advance(kAWhile);
  Settle();
  EXPECT_TRUE(IsThere());
}
TEST_F(CheckpointObjectsTest, WhatAUserWritesIntoItIsPutRight) {
  wanted_ = {DurableOne()};
  Settle();
  ASSERT_TRUE(client_.MergePatch(Checkpoints(), kName, {{"status", {{"phase", "Lost"}, {"x", 1}}}}).ok());
  Settle();
  EXPECT_EQ(Phase(), "Durable");
  EXPECT_FALSE(Now()["status"].contains("x"));
}
TEST_F(CheckpointObjectsTest, AnImageThatIsBeingDeletedGetsNoObject) {
  wanted_ = {DurableOne()};
  wanted_[0].phase = CheckpointPhase::kDeleting;
  Settle();
  EXPECT_FALSE(IsThere());
}
TEST_F(CheckpointObjectsTest, AnImageThatIsBeingDeletedIsSaidToBe) {
  wanted_ = {DurableOne()};
  Settle();
  wanted_[0].phase = CheckpointPhase::kDeleting;
  Settle();
  EXPECT_EQ(Phase(), "Deleting");
}
TEST_F(CheckpointObjectsTest, AnImageOfAJobThatHasEndedGetsNoObject) {
  wanted_ = {DurableOne()};
  wanted_[0].job_ended = true;
  Settle();
  EXPECT_FALSE(IsThere());
}
TEST_F(CheckpointObjectsTest, AnothersObjectOfTheNameIsLeftAlone) {
  const Json others = {{"metadata", {{"labels", {{"a", "b"}}}}}, {"status", {{"phase", "Mine"}}}};
  Put(kName, others);
  wanted_ = {DurableOne()};
  Settle();
  EXPECT_EQ(Phase(), "Mine");
  EXPECT_THAT(log_,
              Contains(HasSubstr("checkpoint d/kubernetes-7.1: written: an object that siding has not")));
  wanted_.clear();
  Settle();
  EXPECT_TRUE(IsThere());
  EXPECT_EQ(CountAsked("POST") + CountAsked("PATCH") + CountAsked("DELETE"), 0);
}
TEST_F(CheckpointObjectsTest, AnotherSidingsObjectsAreLeftAlone) {
  Put(kName, {{"metadata", {{"labels", {{kWriterLabel, "siding-two"}}}}}});
  Settle();
  EXPECT_TRUE(IsThere());
}
TEST_F(CheckpointObjectsTest, AnObjectThatGoesWithAnotherOwnerIsMadeAnew) {
  wanted_ = {DurableOne()};
  Settle();
  clock_.Advance(kAWhile);
  wanted_[0].owner.uid = "another";
  Settle();
  EXPECT_EQ(Now()["metadata"]["ownerReferences"][0]["uid"], "another");
}
TEST_F(CheckpointObjectsTest, AnObjectThatIsBeingDeletedIsNotTouched) {
  wanted_ = {DurableOne()};
  Settle();
  Json json = Now();
  json["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:01Z";
  Put(kName, json);
  wanted_[0].phase = CheckpointPhase::kDamaged;
  Settle();
  EXPECT_EQ(Phase(), "Durable");
  wanted_.clear();
  Settle();
  EXPECT_EQ(CountAsked("DELETE"), 0);
}
TEST_F(CheckpointObjectsTest, ADeletionMeansTheObjectThatWasSeen) {
  wanted_ = {DurableOne()};
  Settle();
  transport_.Hold("checkpoints", true);
  Remove(kName);
  Put(kName, {{"metadata", {{"labels", {{"a", "b"}}}}}});
  wanted_.clear();
  objects_->Round(client_);
  EXPECT_EQ(CountAsked("DELETE"), 1);
  transport_.Hold("checkpoints", false);
  Settle();
  EXPECT_TRUE(IsThere());
}
TEST_F(CheckpointObjectsTest, WhatTheServerRefusesIsSaidAndTriedAgainLater) {
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "/d/checkpoints",
                  .method = HttpMethod::kPost,
                  .code = 403,
                  .reason = "Forbidden"});
  wanted_ = {DurableOne()};
  Settle();
  EXPECT_THAT(log_, Contains(HasSubstr("checkpoint d/kubernetes-7.1: made: ")));
  EXPECT_EQ(CountAsked("POST"), 1);
  clock_.Advance(kAWhile);
  Settle();
  EXPECT_TRUE(IsThere());
}
TEST_F(CheckpointObjectsTest, ManyAreWrittenInSeveralRounds) {
  for (int i = 1; i <= 120; ++i) wanted_.push_back(DurableOne(i));
  Settle();
  EXPECT_EQ(CountAsked("POST"), 120);
  EXPECT_EQ(Phase({"d", "kubernetes-7.120"}), "Durable");
}
TEST_F(CheckpointObjectsTest, WhatTheServerDoesNotTakeOfManyIsInNobodysWay) {
  for (int i = 1; i <= 60; ++i) wanted_.push_back(DurableOne(i));
  Settle();
  for (CheckpointView& checkpoint : wanted_) checkpoint.phase = CheckpointPhase::kDamaged;
  wanted_.push_back(DurableOne(61));
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "/d/checkpoints",
                  .method = HttpMethod::kPatch,
                  .times = 1000,
                  .code = 422});
  for (int round = 0; round < 3; ++round) objects_->Round(client_);
  EXPECT_TRUE(client_.Get(Checkpoints(), {"d", "kubernetes-7.61"}).ok());
}
TEST_F(CheckpointObjectsTest, AConflictIsNothingToSay) {
  wanted_ = {DurableOne()};
  transport_.Add({.kind = Fault::Kind::kAnswer,
                  .path = "/d/checkpoints",
                  .method = HttpMethod::kPost,
                  .code = 409,
                  .reason = "AlreadyExists"});
  Settle();
  EXPECT_THAT(log_, Each(StartsWith("checkpoint z/")));
}
// A controller ends after any of its changes, or does not hear that it was done; the next one goes on.
TEST_F(CheckpointObjectsTest, WhereverAControllerEndsTheNextOneGoesOn) {
  for (int after = 0; after < 8; ++after) {
    wanted_.push_back(DurableOne(after + 1));
    const ObjectName name = NameOf(wanted_.back());
    for (const HttpMethod method : {HttpMethod::kPost, HttpMethod::kPatch}) {
      transport_.Add({.kind = after % 2 == 0 ? Fault::Kind::kUnreachable : Fault::Kind::kAnswerLost,
                      .path = "/d/checkpoints",
                      .method = method,
                      .times = after / 2 + 1});
    }
    for (int i = 0; i < 8; ++i) {
      Settle();
      Restart();
    }
    Settle();
    EXPECT_EQ(Phase(name), "Durable") << after;
  }
  transport_.Add({.kind = Fault::Kind::kAnswerLost,
                  .path = "/d/checkpoints",
                  .method = HttpMethod::kDelete,
                  .times = 5});
  wanted_.clear();
  Settle();
  EXPECT_THAT(client_.List(Checkpoints(), {})->items, IsEmpty());
}

}  // namespace
}  // namespace siding::kubernetes
