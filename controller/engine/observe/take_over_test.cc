// What a take-over asks of the engine: who has been replaced does nothing, and who asks again gets what it
// got.
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// Another controller takes over once it is told to.
class LostJournal final : public JournalOnTop {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    return lost ? Fenced() : JournalOnTop::Append(events);
  }
  absl::Status Confirm() override { return lost ? Fenced() : absl::OkStatus(); }
  bool lost = false;

 private:
  static absl::Status Fenced() { return absl::AbortedError("fenced"); }
};

class TakeOverTest : public EngineTest {
 protected:
  TakeOverTest() {
    AddNodes({"a"});
    auto lost = std::make_unique<LostJournal>();
    lost_ = lost.get();
    engine_.reset();
    journal_ = std::move(lost);
    StartController();
    cluster_.Connect("a");
  }
  absl::StatusOr<Engine::Submitted> Submit(JobSpec spec, const std::string& key,
                                           const Caller& caller = kAda) {
    return engine_->Submit(caller, std::move(spec), key);
  }
  LostJournal* lost_ = nullptr;
};

// A command that has come to nothing is sent again, and no event says so.
TEST_F(TakeOverTest, WhatFollowsFromDecisionsOfBeforeIsNotDoneEither) {
  ASSERT_TRUE(Submit(Batch(), "").ok());
  cluster_.LoseQueue();
  lost_->lost = true;
  Settle(10);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 0);
}
TEST_F(TakeOverTest, WithoutATakeOverItIsSentAgain) {
  ASSERT_TRUE(Submit(Batch(), "").ok());
  cluster_.LoseQueue();
  Settle(10);
  EXPECT_EQ(cluster_.Count(v1::ToAgent::kLaunch), 1);
}
TEST_F(TakeOverTest, SubmissionsAreTurnedAwayForAnotherControllerToTake) {
  lost_->lost = true;
  EXPECT_TRUE(absl::IsUnavailable(Submit(Batch(), "key").status()));
}

TEST_F(TakeOverTest, ASubmissionThatIsMadeAgainIsTheSameJob) {
  const auto first = Submit(Batch(), "key");
  const auto again = Submit(Batch(), "key");
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->id, again->id);
}
TEST_F(TakeOverTest, AlsoByTheNextController) {
  const JobId first = Submit(Batch(), "key")->id;
  StartController();
  EXPECT_EQ(Submit(Batch(), "key")->id, first);
}
TEST_F(TakeOverTest, ADeadlineJobHasThePlanThatItHad) {
  const auto first = Submit(OnDemand(1), "key");
  const auto again = Submit(OnDemand(1), "key");
  ASSERT_TRUE(first.ok() && again.ok()) << first.status() << again.status();
  ASSERT_TRUE(again->plan.has_value());
  EXPECT_EQ(again->plan->predicted_start, first->plan->predicted_start);
}
TEST_F(TakeOverTest, ARefusalIsTheSameRefusal) {
  const absl::Status first = Submit(OnDemand(9), "key").status();
  EXPECT_EQ(Submit(OnDemand(9), "key").status(), first);
}
TEST_F(TakeOverTest, NobodyIsRefusedWhileAgentsDial) {
  ASSERT_TRUE(Submit(Batch(), "").ok());
  StartController();
  const absl::Status status = Submit(OnDemand(1), "key").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Ask again in a moment"));
  cluster_.Connect("a");
  EXPECT_TRUE(Submit(OnDemand(1), "key").ok());
}
TEST_F(TakeOverTest, WhoDoesNotDialIsDoneWithout) {
  ASSERT_TRUE(Submit(Batch(), "").ok());
  StartController();
  clock_.Advance(10s);
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit(OnDemand(1), "key").status()));
}
TEST_F(TakeOverTest, OthersMayUseTheSameKey) {
  EXPECT_NE(Submit(Batch(), "key", kAda)->id, Submit(Batch(), "key", kBob)->id);
}
TEST_F(TakeOverTest, WithoutAKeyEachIsAJobOfItsOwn) {
  EXPECT_NE(Submit(Batch(), "")->id, Submit(Batch(), "")->id);
}
TEST_F(TakeOverTest, AKeyIsForgottenAfterAnHour) {
  const JobId first = Submit(Batch(), "key")->id;
  clock_.Advance(61min);
  EXPECT_NE(Submit(Batch(), "key")->id, first);
}

}  // namespace
}  // namespace siding
