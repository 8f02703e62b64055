// What a user may have written to the journal, and when there is more of it.
#include "controller/engine/decide/rate_limits.h"

#include "common/message_limits.h"
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const Time kStart = FromMicros(1'000'000);

class RateLimitsTest : public testing::Test {
 protected:
  RateLimitsTest() {
    policy_.max_requests_per_hour = 4;
    policy_.max_request_mib_per_hour = 2;
  }
  absl::Status Take(size_t bytes = 0, Duration at = 0s, uint32_t uid = 1000) {
    return rate_limits_.Take(uid, bytes, policy_, kStart + at);
  }

  Policy policy_;
  RateLimits rate_limits_;
};

TEST_F(RateLimitsTest, AnHoursRequestsMayComeAtOnce) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Take().ok());
  EXPECT_THAT(Take().message(), HasSubstr("(max_requests_per_hour: 4); ask again in 900s"));
}
TEST_F(RateLimitsTest, ThereIsOneMoreWhenItSaysSo) {
  for (int i = 0; i < 4; ++i) Take().IgnoreError();
  EXPECT_FALSE(Take(0, 899s).ok());
  EXPECT_TRUE(Take(0, 901s).ok());
}
TEST_F(RateLimitsTest, BytesAreCountedToo) {
  EXPECT_TRUE(Take(kMiB).ok());
  EXPECT_TRUE(Take(kMiB).ok());
  EXPECT_THAT(Take(kMiB).message(), HasSubstr("(max_request_mib_per_hour: 2); ask again in 1800s"));
}
TEST_F(RateLimitsTest, WhatIsRefusedCostsNothing) {
  EXPECT_FALSE(Take(3 * kMiB).ok());
  EXPECT_TRUE(Take(2 * kMiB).ok());
}
TEST_F(RateLimitsTest, UsersHaveTheirOwn) {
  for (int i = 0; i < 4; ++i) Take().IgnoreError();
  EXPECT_TRUE(Take(0, 0s, 1001).ok());
}
TEST_F(RateLimitsTest, RefusalsAreCounted) {
  for (int i = 0; i < 6; ++i) Take().IgnoreError();
  EXPECT_EQ(rate_limits_.refused(), 2);
}
TEST_F(RateLimitsTest, AClockThatWasSetBackTakesNothingAway) {
  for (int i = 0; i < 3; ++i) Take(0, 10s).IgnoreError();
  EXPECT_TRUE(Take(0, 0s).ok());
}

class RateLimitsOfEngineTest : public EngineTest {
 protected:
  RateLimitsOfEngineTest() {
    Policy policy;
    policy.max_requests_per_hour = 3;
    engine_->SetPolicy(policy);
  }
};

TEST_F(RateLimitsOfEngineTest, SubmissionsAndOrdersAreCountedTogether) {
  AddNodes({"a"});
  const JobId job = Submit(Batch());
  Settle();
  EXPECT_TRUE(engine_->Suspend(kAda, job).ok());
  Settle();
  EXPECT_TRUE(engine_->Resume(kAda, job).ok());
  EXPECT_THAT(engine_->Submit(kAda, Batch()).status().message(), HasSubstr("max_requests_per_hour"));
  EXPECT_TRUE(absl::IsResourceExhausted(engine_->Suspend(kAda, job)));
  EXPECT_EQ(engine_->quota_refusals(), 2);
}
TEST_F(RateLimitsOfEngineTest, AJobCanAlwaysBeKilled) {
  JobId job;
  for (int i = 0; i < 3; ++i) job = Submit(Batch());
  ASSERT_FALSE(engine_->Submit(kAda, Batch()).ok());
  EXPECT_TRUE(engine_->Kill(kAda, job).ok());
}
TEST_F(RateLimitsOfEngineTest, WhatIsRefusedLeavesNothing) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(engine_->Submit(kAda, Batch()).ok());
  const size_t events = engine_->EventsAfter(0, 1000, 0s).size();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(engine_->Submit(kAda, Batch()).ok());
  EXPECT_EQ(engine_->EventsAfter(0, 1000, 0s).size(), events);
}
TEST_F(RateLimitsOfEngineTest, OperatorsAreNotCounted) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(engine_->Submit(kRoot, Batch()).ok());
}
TEST_F(RateLimitsOfEngineTest, ARequestThatIsAskedAgainIsAnsweredAgain) {
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(engine_->Submit(kAda, Batch(), "key").ok());
}

class OrdersTest : public EngineTest {};

// Nothing so long can be submitted over the API.
TEST_F(OrdersTest, OneThatCannotBeDeliveredFailsItsJob) {
  AddNodes({"a"});
  JobSpec spec = Batch();
  spec.command.emplace_back(kMostOrder, 'x');
  const JobId job = Submit(spec, kRoot);
  Settle();
  EXPECT_EQ(State(job), JobState::kFailed);
  EXPECT_THAT(Job(job).reason, HasSubstr("and an agent is sent 8388608 at most"));
  const JobId next = Submit(Batch());
  Settle();
  EXPECT_EQ(State(next), JobState::kRunning);
}

// What is kept of a job that is over.
class ContentsTest : public EngineTest {
 protected:
  static JobSpec Full(JobSpec spec) {
    spec.command = {"work", "hard"};
    spec.env = {{"TOKEN", "secret"}};
    spec.app = AppMethod{};
    spec.app->restart_command = {"again"};
    return spec;
  }
  // There is one node, and its job is not preemptible.
  void FillTheCluster() {
    AddNodes({"a"});
    Submit(Batch(1, {}), kBob);
    Settle();
  }
  static void ExpectNothingButCommand(const JobSpec& spec) {
    EXPECT_EQ(spec.command, (std::vector<std::string>{"work", "hard"}));
    EXPECT_TRUE(spec.env.empty());
    EXPECT_TRUE(spec.app->restart_command.empty());
  }
};

TEST_F(ContentsTest, OfARefusedRequestOnlyTheCommandIsJournalled) {
  FillTheCluster();
  const JobSpec spec = Full(OnDemand(1));
  EXPECT_FALSE(engine_->Submit(kAda, spec).ok());
  std::optional<JobSpec> refused;
  ASSERT_TRUE(journal_
                  ->Replay([&](const Event& event) {
                    const auto* body = std::get_if<RequestRefused>(&event.body);
                    if (body != nullptr) refused = body->spec;
                  })
                  .ok());
  ASSERT_TRUE(refused);
  ExpectNothingButCommand(*refused);
  EXPECT_EQ(refused->nodes, 1);
  EXPECT_EQ(refused->uid, kAda.uid);
}
TEST_F(ContentsTest, AJobThatHasEndedKeepsItsCommandOnly) {
  AddNodes({"a"});
  const JobId job = Submit(Full(Batch()));
  Settle();
  EXPECT_EQ(Job(job).spec.command.size(), 2U);
  cluster_.Exit(job, 0, 0);
  Settle();
  EXPECT_EQ(Job(job).state, JobState::kDone);
  ExpectNothingButCommand(Job(job).spec);
}
TEST_F(ContentsTest, ARefusedRequestIsForgottenWhenThereAreTooMany) {
  FillTheCluster();
  engine_->SetRetention({.keep_ended_jobs = 2});
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(engine_->Submit(kAda, OnDemand(1)).ok());
  engine_->Read([](const ClusterState& state) { EXPECT_EQ(state.ended.size(), 5U); });
  Settle();
  engine_->Tick();
  engine_->Read([](const ClusterState& state) { EXPECT_EQ(state.ended.size(), 2U); });
}

}  // namespace
}  // namespace siding
