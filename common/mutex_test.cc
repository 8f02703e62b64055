#include "common/mutex.h"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

// Whether another thread could have it.
bool IsFree(Mutex& mutex) {
  bool is_free = false;
  std::thread([&] {
    if (!mutex.TryLock()) return;
    is_free = true;
    mutex.Unlock();
  }).join();
  return is_free;
}

struct Flag {
  Mutex mutex;
  CondVar changed;
  bool up ABSL_GUARDED_BY(mutex) = false;

  void Raise() {
    {
      MutexLock lock(mutex);
      up = true;
    }
    changed.NotifyAll();
  }
};

TEST(Mutex, IsHeldUntilTheLockGoesOutOfScope) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(Mutex, MayBeGivenBackAndTakenAgain) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.Unlock();
    EXPECT_TRUE(IsFree(mutex));
    lock.Lock();
    EXPECT_FALSE(IsFree(mutex));
    lock.Unlock();
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(Mutex, OneThatIsHeldIsAdopted) {
  Mutex mutex;
  mutex.Lock();
  {
    MutexLock lock(mutex, std::adopt_lock);
    EXPECT_FALSE(IsFree(mutex));
  }
  EXPECT_TRUE(IsFree(mutex));
}

TEST(CondVar, WaitsForTheConditionAndHoldsTheMutexAfterwards) {
  Flag flag;
  std::thread raiser([&] { flag.Raise(); });
  {
    MutexLock lock(flag.mutex);
    flag.changed.Wait(flag.mutex, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flag.mutex) { return flag.up; });
    EXPECT_TRUE(flag.up);
    EXPECT_FALSE(IsFree(flag.mutex));
  }
  raiser.join();
  EXPECT_TRUE(IsFree(flag.mutex));
}

TEST(CondVar, SaysWhetherTheConditionHoldsWhenTheTimeIsOver) {
  Flag flag;
  MutexLock lock(flag.mutex);
  const auto is_up = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(flag.mutex) { return flag.up; };
  EXPECT_FALSE(flag.changed.WaitFor(flag.mutex, 1ms, is_up));
  EXPECT_FALSE(flag.changed.WaitUntil(flag.mutex, std::chrono::steady_clock::now(), is_up));
  EXPECT_FALSE(IsFree(flag.mutex));
  flag.up = true;
  EXPECT_TRUE(flag.changed.WaitFor(flag.mutex, 1ms, is_up));
  EXPECT_TRUE(flag.changed.WaitUntil(flag.mutex, std::chrono::steady_clock::now(), is_up));
}

TEST(CondVar, AConditionThatThrowsLeavesTheMutexToItsLock) {
  Flag flag;
  {
    MutexLock lock(flag.mutex);
    EXPECT_THROW(flag.changed.Wait(flag.mutex, []() -> bool { throw std::runtime_error("no"); }),
                 std::runtime_error);
    EXPECT_FALSE(IsFree(flag.mutex));
  }
  EXPECT_TRUE(IsFree(flag.mutex));
}

}  // namespace
}  // namespace siding
