// Agents that report while the journal is busy.
#include <atomic>
#include <thread>

#include "common/patience_for_test.h"
#include "controller/engine/engine_fixture.h"

namespace siding {
namespace {

// Once: a write that takes until so many messages wait for it.
class BusyJournal final : public JournalOnTop {
 public:
  absl::Status Append(const std::vector<Event>& events) override {
    ++appends;
    busy = until_waiting > 0;
    EXPECT_TRUE(Eventually([&] { return until_waiting == 0 || engine->MessagesWaiting() >= until_waiting; }));
    until_waiting = 0;
    return JournalOnTop::Append(events);
  }
  const Engine* engine = nullptr;
  size_t until_waiting = 0;
  std::atomic<bool> busy = false;
  int appends = 0;
};

class InboxTest : public EngineTest {
 protected:
  static constexpr size_t kJobs = 4;

  InboxTest() {
    journal_.reset(disk_);
    StartController();
    AddNodes({"a"});
    for (size_t i = 0; i < kJobs; ++i) {
      JobSpec spec = Batch();
      spec.per_node.slots = 1;
      jobs_.push_back(Submit(spec));
    }
    Settle();
    disk_->engine = engine_.get();
    disk_->appends = 0;
  }

  BusyJournal* const disk_ = new BusyJournal;
  std::vector<JobId> jobs_;
};

TEST_F(InboxTest, WhatComesWhileTheJournalIsWrittenIsWrittenTogether) {
  disk_->until_waiting = kJobs - 1;
  std::vector<std::thread> agents;
  agents.emplace_back([&] { ReportExit("a", jobs_[0], 0); });
  EXPECT_TRUE(Eventually([&] { return disk_->busy.load(); }));
  for (size_t i = 1; i < kJobs; ++i) agents.emplace_back([&, i] { ReportExit("a", jobs_[i], 0); });
  for (std::thread& agent : agents) agent.join();
  EXPECT_EQ(disk_->appends, 2);
  for (const JobId job : jobs_) EXPECT_EQ(State(job), JobState::kDone);
}

TEST_F(InboxTest, NobodyGoesBeforeHisMessageHasBeenTakenDown) {
  std::vector<std::thread> agents;
  for (const JobId job : jobs_) {
    agents.emplace_back([&, job] {
      ReportExit("a", job, 0);
      EXPECT_EQ(State(job), JobState::kDone);
    });
  }
  for (std::thread& agent : agents) agent.join();
}

}  // namespace
}  // namespace siding
