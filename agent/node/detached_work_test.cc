#include "agent/node/detached_work.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using Steady = DetachedWork::Steady;

// What work waits for.
class Gate {
 public:
  explicit Gate(std::string what) : what_(std::move(what)) {}
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Pass() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return open_;
    })) << what_;
  }

 private:
  const std::string what_;  // it waits for
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(DetachedWork, IsDoneOnAnotherThread) {
  DetachedWork work;
  const auto done = std::make_shared<std::atomic<bool>>(false);
  EXPECT_TRUE(work.Begin([done] { *done = true; }));
  EXPECT_TRUE(work.Wait(Steady::now() + kPatience)) << "the work to end";
  EXPECT_TRUE(*done);
  EXPECT_FALSE(work.since());
}

TEST(DetachedWork, OneThatDoesNotComeBackIsNotWaitedFor) {
  DetachedWork work;
  const auto gate = std::make_shared<Gate>("the test to let the work end");
  const auto before = Steady::now();
  EXPECT_TRUE(work.Begin([gate] { gate->Pass(); }));
  EXPECT_FALSE(work.Wait(Steady::now()));
  EXPECT_GE(work.since(), before);
  gate->Open();
  EXPECT_TRUE(work.Wait(Steady::now() + kPatience)) << "the work to end";
}

TEST(DetachedWork, ThereIsNeverASecondThread) {
  DetachedWork work;
  const auto gate = std::make_shared<Gate>("the test to let the work end");
  EXPECT_TRUE(work.Begin([gate] { gate->Pass(); }));
  EXPECT_FALSE(work.Begin([] {}));
  gate->Open();
  EXPECT_TRUE(work.Wait(Steady::now() + kPatience)) << "the work to end";
  EXPECT_TRUE(work.Begin([] {}));
}

TEST(DetachedWork, OneThatIsLeftBehindMayEndLater) {
  const auto gate = std::make_shared<Gate>("the test to let the work end");
  const auto ended = std::make_shared<Gate>("the end of the work");
  {
    DetachedWork().Begin([gate, ended] {
      gate->Pass();
      ended->Open();
    });
  }
  gate->Open();
  ended->Pass();
}

}  // namespace
}  // namespace siding
