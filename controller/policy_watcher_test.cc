#include "controller/policy_watcher.h"

#include <cstdlib>

#include "common/clock.h"
#include "common/files.h"
#include "controller/engine/fake_cluster.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

class PolicyWatcherTest : public testing::Test {
 protected:
  PolicyWatcherTest() {
    char name[] = "/tmp/siding-policy-XXXXXX";
    folder_ = mkdtemp(name);
    Write("margin: 1s\n", 1);
    engine_ = std::make_unique<Engine>(Policy(), *journal_, *platform_, cluster_, clock_);
    EXPECT_TRUE(engine_->Start().ok());
    watcher_ = std::make_unique<PolicyWatcher>(path(), *engine_);
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
  watcher_->Look(true);
  EXPECT_FALSE(engine_->IsOperator("bob"));
}

}  // namespace
}  // namespace siding
