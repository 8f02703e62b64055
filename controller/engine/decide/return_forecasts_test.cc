// When jobs that made way are said to be back, and when they are.
#include <random>

#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReturnForecastsTest : public EngineTest {
 protected:
  std::optional<Back> BackOf(JobId job) {
    const auto backs = engine_->Returns();
    const auto back = backs->find(job);
    return back == backs->end() ? std::nullopt : std::optional(back->second);
  }
  JobSpec Limited(JobSpec spec, Duration walltime) {
    spec.walltime = walltime;
    spec.kill_grace = 1s;
    return spec;
  }
  JobId Displace(const JobSpec& request) {
    const JobId id = Submit(request);
    Settle(5);
    EXPECT_EQ(State(id), JobState::kRunning);
    return id;
  }
};

TEST_F(ReturnForecastsTest, AFrozenJobIsBackWhenTheRequestsWalltimeHasEndedIt) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId request = Displace(Limited(OnDemand(1), 100s));
  const auto back = BackOf(job);
  ASSERT_TRUE(back && back->predicted && back->latest);
  EXPECT_EQ(back->predicted, back->latest);
  EXPECT_EQ(back->predicted, Job(request).running_since + 100s + 1s + 2s)
      << "kill_grace, and to be seen to be gone";
  EXPECT_THAT(back->nodes, ElementsAre(NodeId("a")));
  EXPECT_EQ(back->because.kind, BackKind::kWalltime);
  EXPECT_EQ(back->because.job, request);
  EXPECT_TRUE(back->because.image);
}

TEST_F(ReturnForecastsTest, OfARequestWithoutAWalltimeItIsSaidWhatThePolicyExpects) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId request = Displace(OnDemand(1));
  const auto back = BackOf(job);
  ASSERT_TRUE(back && back->predicted);
  EXPECT_EQ(back->predicted, Job(request).running_since + policy_.expected_hold);
  EXPECT_EQ(back->latest, std::nullopt);
  EXPECT_EQ(back->because.kind, BackKind::kExpected);
}

TEST_F(ReturnForecastsTest, WhenThatIsOverNothingIsSaid) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  const JobId request = Displace(OnDemand(1));
  clock_.Advance(policy_.expected_hold);
  const auto back = BackOf(job);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->predicted, std::nullopt);
  EXPECT_EQ(back->because.kind, BackKind::kNoEnd);
  EXPECT_EQ(back->because.job, request);
}

TEST_F(ReturnForecastsTest, AParkedJobWaitsForAnyNode) {
  cluster_.local_disk_free = 0;
  AddNodes({"a", "b"});
  const JobId parked = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  const JobId other = Submit(Limited(Batch(1, {}), 50s));
  Settle();
  Displace(Limited(OnDemand(1, 20s), 1000s));
  ASSERT_EQ(State(parked), JobState::kParked);
  const auto back = BackOf(parked);
  ASSERT_TRUE(back && back->predicted);
  EXPECT_EQ(back->because.job, other);
  EXPECT_EQ(back->nodes.size(), 1U);
}

TEST_F(ReturnForecastsTest, AJobOfTheQueueHasOneToo) {
  AddNodes({"a"});
  const JobId first = Submit(Limited(Batch(1, {}), 50s));
  Settle();
  const JobId second = Submit(Batch(1, {})), third = Submit(Batch(1, {}));
  EXPECT_EQ(BackOf(first), std::nullopt);
  const auto back = BackOf(second);
  ASSERT_TRUE(back && back->predicted);
  EXPECT_EQ(back->because.job, first);
  const auto behind = BackOf(third);
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->predicted, std::nullopt) << "nobody knows when the second will have ended";
  EXPECT_EQ(behind->because.job, second);
}

TEST_F(ReturnForecastsTest, ANodeThatIsAwayIsNamed) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kSuspend}));
  Settle();
  Displace(Limited(OnDemand(1), 100s));
  cluster_.Disconnect("a");
  const auto back = BackOf(job);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->predicted, std::nullopt);
  EXPECT_EQ(back->because.kind, BackKind::kNodeAway);
  EXPECT_EQ(back->because.node, NodeId("a"));
  EXPECT_TRUE(back->because.image);
}

TEST_F(ReturnForecastsTest, AJobThatIsHeldHasNone) {
  AddNodes({"a"});
  const JobId job = Submit(Batch(1, {Method::kCheckpoint}));
  Settle();
  Displace(Limited(OnDemand(1), 100s));
  ASSERT_TRUE(engine_->Hold(kAda, job).ok());
  const auto back = BackOf(job);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->because.kind, BackKind::kHeld);
}

// Jobs of a node each, of all priorities and methods; what is forecast once all have left is compared with
// what comes.
class ForecastWorldTest : public ReturnForecastsTest, public testing::WithParamInterface<int> {};

TEST_P(ForecastWorldTest, NobodyIsBackLaterThanAtTheLatest) {
  std::mt19937 random(GetParam());
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  AddNodes({"a", "b", "c", "d"});
  std::vector<JobId> jobs;
  for (int i = 0; i < 6; ++i) {
    // One after the other: compilers differ in the order of arguments, and each would have worlds of its own.
    const std::chrono::seconds limit(draw(60, 200));
    const Method method = draw(0, 1) == 0 ? Method::kSuspend : Method::kCheckpoint;
    JobSpec spec = Limited(Batch(1, {method}), limit);
    spec.priority = draw(-1, 1);
    jobs.push_back(Submit(spec));
    Settle(1);
  }
  Settle();
  for (int i = draw(1, 3); i > 0; --i) Submit(Limited(OnDemand(1), std::chrono::seconds(draw(10, 100))));
  Settle(5);
  const auto backs = engine_->Returns();
  std::map<JobId, Time> left;
  for (const auto& [job, back] : *backs) {
    if (back.latest) left[job] = *back.latest;
  }
  EXPECT_THAT(left, testing::Not(IsEmpty()));
  for (int second = 0; second < 1000 && !left.empty(); ++second) {
    std::erase_if(left, [&](const auto& waits) {
      const JobState state = State(waits.first);
      const bool is_back =
          state != JobState::kSuspended && state != JobState::kParked && state != JobState::kPending;
      EXPECT_TRUE(is_back || clock_.Now() <= waits.second + 2s)
          << "job " << waits.first << " is " << ToString(state);
      return is_back || clock_.Now() > waits.second + 2s;
    });
    Settle(1);
  }
  EXPECT_THAT(left, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(ByChance, ForecastWorldTest, testing::Range(0, 20));

}  // namespace
}  // namespace siding
