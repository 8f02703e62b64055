#include "controller/platform/slurm/slurm_platform.h"

#include <sstream>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/platform/slurm/client/fake_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"

namespace siding::slurm {
namespace {

using namespace std::chrono_literals;

class SlurmPlatformTest : public testing::Test {
 protected:
  SlurmPlatformTest() : slurm_(new FakeClient) {
    slurm_->Add(1, JobPhase::kPending);
    platform_ = NewSlurmPlatform(std::unique_ptr<Client>(slurm_), {.interval = 1ms, .user_name = Name},
                                 SystemClock());
  }
  ~SlurmPlatformTest() override { platform_->Stop(); }
  static std::string Name(uint32_t) { return "ann"; }

  void Start() {
    platform_->Start([this](ManagerChanges changes) {
      MutexLock lock(mutex_);
      heard_.push_back(std::move(changes));
      if (then_) std::exchange(then_, nullptr)();
      news_.NotifyAll();
    });
  }
  // The first thing that was to be heard, or a later one.
  ManagerChanges Hear(size_t number = 1) {
    MutexLock lock(mutex_);
    const bool heard = news_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return heard_.size() >= number; });
    EXPECT_TRUE(heard);
    return heard ? heard_[number - 1] : ManagerChanges();
  }

  FakeClient* const slurm_;  // the platform's; read only while nobody looks
  std::unique_ptr<SlurmPlatform> platform_;
  std::function<void()> then_;  // what becomes of Slurm after the first poll; on the watcher's thread
  Mutex mutex_;
  CondVar news_;
  std::vector<ManagerChanges> heard_;
};

TEST_F(SlurmPlatformTest, SaysWhatThereIs) {
  Start();
  ASSERT_EQ(Hear().jobs.size(), 1u);
  EXPECT_EQ(Hear().jobs[0].spec.user, "ann");
}

TEST_F(SlurmPlatformTest, SaysThatSlurmDoesNotAnswer) {
  slurm_->health = absl::UnavailableError("connect failure");
  Start();
  EXPECT_FALSE(Hear().answers);
}

// Who hears of an answer without jobs takes all of them to be gone.
TEST_F(SlurmPlatformTest, SaysWhatThereIsWhenItAnswersAgain) {
  slurm_->health = absl::UnavailableError("connect failure");
  then_ = [this] { slurm_->health = absl::OkStatus(); };
  Start();
  EXPECT_TRUE(Hear(2).answers);
  EXPECT_EQ(Hear(2).jobs.size(), 1u);
}

TEST_F(SlurmPlatformTest, SaysThatItAnswersAgainAlsoIfNothingHasChanged) {
  then_ = [this] {
    slurm_->health = absl::UnavailableError("connect failure");
    then_ = [this] { slurm_->health = absl::OkStatus(); };
  };
  Start();
  EXPECT_FALSE(Hear(2).answers);
  EXPECT_TRUE(Hear(3).answers);
}

TEST_F(SlurmPlatformTest, WhatIsDesiredMayBeSetBeforeItPolls) {
  platform_->SetDesired({.kept = {}, .jobs = {{JobId(1), {.nodes = {NodeId("a")}, .why = "x"}}}});
  Start();
  // The changes come first, then what is desired; the second poll shows it.
  Hear(2);
  platform_->Stop();
  EXPECT_THAT(slurm_->jobs.at(JobNumber(1)).only_on, testing::ElementsAre(NodeId("a")));
}

TEST_F(SlurmPlatformTest, WrongSettingsOfSlurmAreSaid) {
  std::ostringstream said;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said)));
  slurm_->settings = {
      .requeue_exits = {1}, .requeue_hold_exits = {98}, .requeues = true, .keeps_output = true};
  Start();
  Hear();
  platform_->Stop();
  spdlog::set_default_logger(before);
  EXPECT_THAT(said.str(), testing::HasSubstr("slurm: RequeueExit lacks 99"));
  EXPECT_THAT(said.str(), testing::Not(testing::HasSubstr("JobFileAppend")));
}

TEST_F(SlurmPlatformTest, FreezingFreesCpusAndNoGpus) {
  EXPECT_TRUE(platform_->capabilities().freezing_frees_slots);
  EXPECT_FALSE(platform_->capabilities().freezing_frees_gpus);
}

TEST_F(SlurmPlatformTest, KnowsAReservationThatWasJustMade) {
  slurm_->partitions["p"] = {.name = "p", .is_default = true, .nodes = {NodeId("a"), NodeId("b")}};
  then_ = [this] {
    slurm_->reservations["theirs"] = {"theirs", {NodeId("a")}, {}, Time{}, SystemClock().Now() + 1h};
    slurm_->Add(2, JobPhase::kPending);
  };
  Start();
  Hear(2);
  EXPECT_EQ(platform_->NodesFor(JobSpec()), std::set<NodeId>{NodeId("b")});
}

TEST_F(SlurmPlatformTest, KnowsTheNodesOfAPartition) {
  slurm_->partitions["p"] = {.name = "p", .is_default = true, .nodes = {NodeId("a")}};
  Start();
  Hear();
  EXPECT_EQ(platform_->NodesFor(JobSpec()), std::set<NodeId>{NodeId("a")});
}

}  // namespace
}  // namespace siding::slurm
