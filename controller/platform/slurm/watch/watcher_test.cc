#include "controller/platform/slurm/watch/watcher.h"

#include <future>
#include <string>
#include <vector>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using std::chrono::milliseconds;

class PaceTest : public testing::Test {
 protected:
  // After so many polls that took so long, one after the other.
  Duration After(int polls, Duration took) {
    Duration pause{0};
    for (int i = 0; i < polls; ++i) pause = pace_.After(took);
    return pause;
  }
  Pace pace_{milliseconds(1)};
};

TEST_F(PaceTest, IsTheIntervalWhilePollsAreQuick) {
  EXPECT_EQ(Pace(milliseconds(500)).After(milliseconds(1)), milliseconds(500));
}
TEST_F(PaceTest, IsNeverLessThanTheLeast) { EXPECT_EQ(After(1, Duration(0)), kLeastPause); }
TEST_F(PaceTest, GrowsWithWhatPollsTake) { EXPECT_EQ(After(2, milliseconds(100)), milliseconds(1900)); }
TEST_F(PaceTest, HasABound) { EXPECT_EQ(After(2, std::chrono::minutes(1)), kMostPause); }
TEST_F(PaceTest, IsNotMadeLongByOneThatWaitedForSlurmToComeBack) {
  After(2, milliseconds(1));
  EXPECT_EQ(After(1, std::chrono::seconds(3)), kLeastPause);
}
TEST_F(PaceTest, NorByTheFirstOneWhichBringsEverything) {
  EXPECT_EQ(After(1, std::chrono::seconds(3)), kLeastPause);
}

// Waits until the watcher has said so much.
class Heard final : public PollListener {
 public:
  void OnChanges(const Changes& changes) override {
    state_ = changes.jobs.front().after ? changes.jobs.front().after->state : "gone";
  }
  void OnPolled(const std::vector<QueueJob>&, bool changed) override {
    if (changed) Add(state_);
  }
  void OnInventory(const Client::List<Partition>&, const Client::List<Reservation>&) override {}
  void OnHealth(const absl::Status& health) override { Add(health.ok() ? "answers" : "silent"); }

  std::vector<std::string> Await(size_t count) {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return said_.size() >= count; }));
    return said_;
  }

 private:
  void Add(const std::string& what) {
    MutexLock lock(mutex_);
    said_.push_back(what);
    changed_.NotifyAll();
  }
  std::string state_;  // of the watcher's thread
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> said_;
};

// For a poll that is answered only after an hour: this, and a state.
constexpr char kHung = '~';

// A Slurm of which each poll sees the next of a list of moments: a job's state, or "" for no answer.
class Film final : public Client {
 public:
  explicit Film(std::vector<std::string> moments) : moments_(std::move(moments)) {}
  const Clock& clock() const { return clock_; }
  std::string Description() const override { return "a film"; }
  absl::StatusOr<List<QueueJob>> Jobs() override {
    std::string moment = moments_[std::min(next_++, moments_.size() - 1)];
    if (moment.empty()) return absl::UnavailableError("connect failure");
    if (moment.front() == kHung) {
      clock_.Advance(std::chrono::hours(1));
      moment.erase(0, 1);
    }
    QueueJob job;
    job.id = JobNumber(1);
    job.state = moment;
    return std::make_shared<const std::vector<QueueJob>>(1, job);
  }
  absl::StatusOr<List<QueueNode>> Nodes() override {
    return std::make_shared<const std::vector<QueueNode>>();
  }
  absl::StatusOr<List<Partition>> Partitions() override { return absl::UnimplementedError("film"); }
  absl::StatusOr<List<Reservation>> Reservations() override { return absl::UnimplementedError("film"); }
  absl::StatusOr<Settings> LoadSettings() override { return absl::UnimplementedError("film"); }
  absl::Status Do(JobNumber, Verb) override { return absl::UnimplementedError("film"); }
  absl::Status Update(JobNumber, const JobChange&) override { return absl::UnimplementedError("film"); }
  absl::Status CreateReservation(const Reservation&) override { return absl::UnimplementedError("film"); }
  absl::Status DeleteReservation(const std::string&) override { return absl::UnimplementedError("film"); }

 private:
  FakeClock clock_;
  const std::vector<std::string> moments_;
  size_t next_ = 0;
};

TEST(Watcher, TellsChangesAndHealthOnce) {
  Film slurm({"PENDING", "PENDING", "", "", "RUNNING"});
  Heard heard;
  Watcher watcher(slurm, heard, slurm.clock());
  EXPECT_EQ(heard.Await(4), (std::vector<std::string>{"PENDING", "silent", "answers", "RUNNING"}));
}

TEST(Watcher, LooksAgainSoonAfterAPollThatWaitedOutAnOutage) {
  Film slurm({"PENDING", "~PENDING", "RUNNING"});
  Heard heard;
  Watcher watcher(slurm, heard, slurm.clock());
  EXPECT_EQ(heard.Await(2), (std::vector<std::string>{"PENDING", "RUNNING"}));
}

TEST(Watcher, IsWokenBeforeItsTime) {
  Film slurm({"PENDING", "RUNNING"});
  Heard heard;
  Watcher watcher(slurm, heard, slurm.clock(), std::chrono::hours(1));
  heard.Await(1);
  watcher.Wake();
  EXPECT_EQ(heard.Await(2), (std::vector<std::string>{"PENDING", "RUNNING"}));
}

// Wakes the watcher whenever something has changed, as the engine does when it desires something else then.
class Waking final : public PollListener {
 public:
  void OnChanges(const Changes&) override {
    std::future<Watcher*> made = watcher.get_future();
    if (Comes(made)) {
      made.get()->Wake();
    } else {
      ADD_FAILURE() << "the watcher to be made";
    }
  }
  void OnPolled(const std::vector<QueueJob>&, bool) override {
    if (polls++ == 0) first.set_value();
  }
  void OnInventory(const Client::List<Partition>&, const Client::List<Reservation>&) override {}
  void OnHealth(const absl::Status&) override {}

  std::promise<Watcher*> watcher;
  std::promise<void> first;
  int polls = 0;
};

// A poll too many is seen only if it begins before the watcher ends, hence several times.
TEST(Watcher, WhoWakesItWhileItTellsIsServedByTheSamePoll) {
  for (int time = 0; time < 30; ++time) {
    Film slurm({"PENDING"});
    Waking waking;
    {
      Watcher watcher(slurm, waking, slurm.clock(), std::chrono::hours(1));
      waking.watcher.set_value(&watcher);
      ASSERT_TRUE(Comes(waking.first.get_future()));
    }
    ASSERT_EQ(waking.polls, 1);
  }
}

}  // namespace
}  // namespace siding::slurm
