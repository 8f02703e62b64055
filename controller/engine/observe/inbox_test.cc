// Agents that report while the journal is busy.
#include "controller/engine/observe/inbox.h"

#include <atomic>
#include <functional>
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
    EXPECT_TRUE(Eventually(
        [&] { return until_waiting == 0 || (engine->MessagesWaiting() >= until_waiting && also()); }));
    until_waiting = 0;
    return JournalOnTop::Append(events);
  }
  const Engine* engine = nullptr;
  size_t until_waiting = 0;
  std::function<bool()> also = [] { return true; };
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

TEST_F(InboxTest, OneThreadWaitsForTheOthers) {
  disk_->until_waiting = kJobs - 1;
  std::atomic<size_t> gone = 0;
  disk_->also = [&] { return gone == kJobs - 2; };  // all but the one that writes, and the one that waits
  std::vector<std::thread> agents;
  agents.emplace_back([&] { ReportExit("a", jobs_[0], 0); });
  EXPECT_TRUE(Eventually([&] { return disk_->busy.load(); }));
  for (size_t i = 1; i < kJobs; ++i) {
    agents.emplace_back([&, i] {
      ReportExit("a", jobs_[i], 0);
      ++gone;
    });
  }
  for (std::thread& agent : agents) agent.join();
  for (const JobId job : jobs_) EXPECT_EQ(State(job), JobState::kDone);
}

TEST_F(InboxTest, WhatANodeSaidLastIsLookedAtBeforeItIsGone) {
  disk_->until_waiting = 2;
  std::thread writer([&] { ReportExit("a", jobs_[0], 0); });
  EXPECT_TRUE(Eventually([&] { return disk_->busy.load(); }));
  std::thread waits([&] { ReportExit("a", jobs_[1], 0); });
  EXPECT_TRUE(Eventually([&] { return engine_->MessagesWaiting() == 1; }));
  ReportExit("a", jobs_[2], 0);
  engine_->OnDisconnected(NodeId("a"));
  EXPECT_EQ(State(jobs_[2]), JobState::kDone);
  writer.join();
  waits.join();
}

TEST(InboxLimitTest, TheFirstOneTakesForAllUntilTheyAreTooMany) {
  Inbox inbox;
  v1::FromAgent small, large;
  large.mutable_report()->set_error(std::string(Inbox::kMostBytes, 'x'));
  EXPECT_TRUE(inbox.Add(NodeId("a"), small));
  EXPECT_FALSE(inbox.Add(NodeId("b"), small));
  EXPECT_TRUE(inbox.Add(NodeId("c"), large));
  EXPECT_EQ(inbox.Take().size(), 3u);
  EXPECT_TRUE(inbox.Add(NodeId("a"), small));
}

}  // namespace
}  // namespace siding
