#include "controller/platform/slurm/watcher.h"

#include <string>
#include <vector>

#include "controller/platform/slurm/fake_client.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using std::chrono::milliseconds;

TEST(Looker, AtFirstEverythingIsNew) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  slurm.nodes[NodeId("a")].id = NodeId("a");
  Looker looker(slurm);
  const auto changes = looker.Look();
  EXPECT_EQ(changes->jobs.size(), 1u);
  EXPECT_EQ(changes->nodes.size(), 1u);
}

TEST(Looker, ThenOnlyWhatHasChanged) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  slurm.Add(2, JobPhase::kRunning);
  Looker looker(slurm);
  ASSERT_TRUE(looker.Look().ok());
  ASSERT_TRUE(slurm.Do(JobNumber(2), Verb::kSuspend).ok());
  const auto changes = looker.Look();
  ASSERT_EQ(changes->jobs.size(), 1u);
  EXPECT_EQ(changes->jobs.front().after->phase, JobPhase::kSuspended);
  EXPECT_TRUE(looker.Look()->empty());
}

TEST(Looker, ASlurmThatDoesNotAnswerHasNotLostItsJobs) {
  FakeClient slurm;
  slurm.Add(1, JobPhase::kRunning);
  Looker looker(slurm);
  ASSERT_TRUE(looker.Look().ok());
  slurm.health = absl::UnavailableError("connect failure");
  EXPECT_FALSE(looker.Look().ok());
  slurm.health = absl::OkStatus();
  EXPECT_TRUE(looker.Look()->empty());
}

TEST(PauseAfter, IsTheIntervalWhileLooksAreQuick) {
  EXPECT_EQ(PauseAfter(milliseconds(1), milliseconds(500)), milliseconds(500));
}
TEST(PauseAfter, IsNeverLessThanTheLeast) {
  EXPECT_EQ(PauseAfter(milliseconds(0), milliseconds(1)), kLeastPause);
}
TEST(PauseAfter, GrowsWithWhatALookTakes) {
  EXPECT_EQ(PauseAfter(milliseconds(100), kLeastPause), milliseconds(1900));
}

// Waits until the watcher has said so much.
class Heard final : public ChangeListener {
 public:
  void OnChanges(const Changes& changes) override {
    Add(changes.jobs.front().after ? changes.jobs.front().after->state : "gone");
  }
  void OnHealth(const absl::Status& health) override { Add(health.ok() ? "answers" : "silent"); }
  void OnStep(const StepTaken& taken) override { Add(taken.step.target); }

  std::vector<std::string> Await(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return said_.size() >= count; });
    return said_;
  }

 private:
  void Add(const std::string& what) {
    std::lock_guard lock(mutex_);
    said_.push_back(what);
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> said_;
};

// A Slurm of which each look sees the next of a list of moments: a job's state, or "" for no answer.
class Film final : public Client {
 public:
  explicit Film(std::vector<std::string> moments) : moments_(std::move(moments)) {}
  std::string Description() const override { return "a film"; }
  absl::StatusOr<List<QueueJob>> Jobs() override {
    const std::string moment = moments_[std::min(next_++, moments_.size() - 1)];
    if (moment.empty()) return absl::UnavailableError("connect failure");
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
  absl::Status Do(JobNumber, Verb) override { return absl::UnimplementedError("film"); }
  absl::Status Update(JobNumber, const JobChange&) override { return absl::UnimplementedError("film"); }
  absl::Status CreateReservation(const Reservation&) override { return absl::UnimplementedError("film"); }
  absl::Status DeleteReservation(const std::string&) override { return absl::UnimplementedError("film"); }

 private:
  const std::vector<std::string> moments_;
  size_t next_ = 0;
};

TEST(Watcher, TellsChangesAndHealthOnce) {
  Film slurm({"PENDING", "PENDING", "", "", "RUNNING"});
  Heard heard;
  Watcher watcher(slurm, heard, SystemClock());
  EXPECT_EQ(heard.Await(4), (std::vector<std::string>{"PENDING", "silent", "answers", "RUNNING"}));
}

TEST(Watcher, TakesUpWishes) {
  FakeClient slurm;
  slurm.reservations["siding-7"].name = "siding-7";
  Heard heard;
  Watcher watcher(slurm, heard, SystemClock());
  watcher.Want({});
  EXPECT_EQ(heard.Await(1).front(), "reservation siding-7");
}

}  // namespace
}  // namespace siding::slurm
