#include "agent/node/aside.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::hours;
using Steady = Aside::Steady;

// What work waits for.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;  // guarded by mutex_
};

TEST(Aside, IsDoneOnAnotherThread) {
  Aside aside;
  const auto done = std::make_shared<std::atomic<bool>>(false);
  EXPECT_TRUE(aside.Begin([done] { *done = true; }));
  EXPECT_TRUE(aside.Wait(Steady::now() + hours(1)));
  EXPECT_TRUE(*done);
  EXPECT_FALSE(aside.since());
}

TEST(Aside, OneThatDoesNotComeBackIsNotWaitedFor) {
  Aside aside;
  const auto gate = std::make_shared<Gate>();
  const auto before = Steady::now();
  EXPECT_TRUE(aside.Begin([gate] { gate->Pass(); }));
  EXPECT_FALSE(aside.Wait(Steady::now()));
  EXPECT_GE(aside.since(), before);
  gate->Open();
  EXPECT_TRUE(aside.Wait(Steady::now() + hours(1)));
}

TEST(Aside, ThereIsNeverASecondThread) {
  Aside aside;
  const auto gate = std::make_shared<Gate>();
  EXPECT_TRUE(aside.Begin([gate] { gate->Pass(); }));
  EXPECT_FALSE(aside.Begin([] {}));
  gate->Open();
  EXPECT_TRUE(aside.Wait(Steady::now() + hours(1)));
  EXPECT_TRUE(aside.Begin([] {}));
}

TEST(Aside, OneThatIsLeftBehindMayEndLater) {
  const auto gate = std::make_shared<Gate>();
  const auto ended = std::make_shared<Gate>();
  {
    Aside().Begin([gate, ended] {
      gate->Pass();
      ended->Open();
    });
  }
  gate->Open();
  ended->Pass();
}

}  // namespace
}  // namespace siding
