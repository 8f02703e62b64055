#include "controller/policy_watcher.h"

#include <cstdlib>

#include "common/clock.h"
#include "common/files.h"
#include "controller/engine/fake_cluster.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PolicyWatcherTest : public testing::Test {
 protected:
  PolicyWatcherTest() {
    char name[] = "/tmp/siding-policy-XXXXXX";
    folder_ = mkdtemp(name);
    Write("margin: 1s\n", 1);
    engine_ = std::make_unique<Engine>(Policy{.margin = std::chrono::seconds(1)}, *journal_, *platform_,
                                       cluster_, clock_);
    EXPECT_TRUE(engine_->Start().ok());
    watcher_ = std::make_unique<PolicyWatcher>(path(), *engine_, clock_);
  }
  ~PolicyWatcherTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/p.yaml"; }
  // `version` makes the time of change: a file system's clock is coarse.
  void Write(const std::string& text, int version) {
    ASSERT_TRUE(WriteFileAtomically(path(), text).ok());
    std::filesystem::last_write_time(path(), std::filesystem::file_time_type(std::chrono::seconds(version)));
  }
  void LookForASecond() {
    for (int i = 0; i < 10; ++i) watcher_->Look();
  }

  std::string folder_;
  FakeClock clock_{FromMicros(1)};
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<PolicyWatcher> watcher_;
};

TEST_F(PolicyWatcherTest, AChangedFileIsInForceWithinASecond) {
  Write("operators: [ada]\n", 2);
  LookForASecond();
  EXPECT_TRUE(engine_->IsOperator("ada"));
}
TEST_F(PolicyWatcherTest, ABadFileKeepsThePolicyAndIsCounted) {
  Write("operators: [ada]\n", 2);
  LookForASecond();
  Write("operators: {}\n", 3);
  LookForASecond();
  EXPECT_TRUE(engine_->IsOperator("ada"));
  EXPECT_EQ(engine_->policy_failures(), 1);
}
TEST_F(PolicyWatcherTest, AnUnchangedFileIsNotLoaded) {
  engine_->SetPolicy(Policy{.operators = {"bob"}});
  LookForASecond();
  EXPECT_TRUE(engine_->IsOperator("bob"));
}
TEST_F(PolicyWatcherTest, OnDemandItIsLoadedAtOnce) {
  engine_->SetPolicy(Policy{.operators = {"bob"}});
  EXPECT_TRUE(watcher_->Reload().ok());
  EXPECT_FALSE(engine_->IsOperator("bob"));
}
TEST_F(PolicyWatcherTest, AReloadSaysWhatItChanged) {
  Write("margin: 2s\n", 2);
  EXPECT_THAT(watcher_->Reload()->changes, ElementsAre("-margin: 1s", "+margin: 2s"));
}
TEST_F(PolicyWatcherTest, AReloadOfTheSameChangesNothing) {
  EXPECT_THAT(watcher_->Reload()->changes, IsEmpty());
}
TEST_F(PolicyWatcherTest, AReloadSaysWhatIsOdd) {
  Write("max_preemptions: 0\n", 2);
  EXPECT_THAT(watcher_->Reload()->warnings, ElementsAre(HasSubstr("no job may ever be a victim")));
}
TEST_F(PolicyWatcherTest, AReloadOfABadFileNamesItsLine) {
  Write("margin: 1s\nconfidence: 7\n", 2);
  const absl::Status status = watcher_->Reload().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), HasSubstr(path() + ":2: confidence: expected"));
}
TEST_F(PolicyWatcherTest, AReloadNeedsAFile) {
  PolicyWatcher none("", *engine_, clock_);
  EXPECT_THAT(none.Reload().status().message(), HasSubstr("without --policy"));
}
TEST_F(PolicyWatcherTest, AReloadedFileIsNotLoadedAgain) {
  Write("margin: 2s\n", 2);
  ASSERT_TRUE(watcher_->Reload().ok());
  engine_->SetPolicy(Policy{.operators = {"bob"}});
  LookForASecond();
  EXPECT_TRUE(engine_->IsOperator("bob"));
}

TEST_F(PolicyWatcherTest, WhatHasChangedIsRecordedAndWhoLoadedIt) {
  Write("margin: 2s\n", 2);
  LookForASecond();
  Write("margin: 3s\n", 3);
  ASSERT_TRUE(watcher_->Reload("ada").ok());
  const std::vector<Event> events = engine_->EventsAfter(0, 10, Duration(0));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(KindOf(events[0]), "policy-changed");
  EXPECT_EQ(Describe(events[0]), "the policy file has changed: -margin: 1s; +margin: 2s");
  EXPECT_EQ(Describe(events[1]), "the policy was loaded again by ada: -margin: 2s; +margin: 3s");
}
TEST_F(PolicyWatcherTest, ALoadThatChangesNothingIsNoEvent) {
  ASSERT_TRUE(watcher_->Reload("ada").ok());
  EXPECT_THAT(engine_->EventsAfter(0, 10, Duration(0)), IsEmpty());
}

TEST_F(PolicyWatcherTest, KnowsWhenItWasLoaded) {
  clock_.Advance(Duration(76));
  ASSERT_TRUE(watcher_->Reload().ok());
  EXPECT_EQ(watcher_->Current().loaded, FromMicros(77));
}
TEST_F(PolicyWatcherTest, ABadFileDoesNotCountAsLoaded) {
  Write("margin: 0\n", 2);
  clock_.Advance(Duration(76));
  EXPECT_FALSE(watcher_->Reload().ok());
  EXPECT_EQ(watcher_->Current().loaded, FromMicros(1));
}
TEST_F(PolicyWatcherTest, KnowsWhyTheFileIsNotInForce) {
  Write("margin: 0\n", 2);
  LookForASecond();
  EXPECT_THAT(watcher_->Current().problem, HasSubstr("margin"));
}
TEST_F(PolicyWatcherTest, AGoodFileEndsTheProblem) {
  Write("margin: 0\n", 2);
  LookForASecond();
  Write("margin: 2s\n", 3);
  LookForASecond();
  EXPECT_EQ(watcher_->Current().problem, "");
}

}  // namespace
}  // namespace siding
