// std::mutex and std::condition_variable, known to clang's analysis of locks: a field that is declared
// ABSL_GUARDED_BY(mutex_) and used without the mutex is a warning of -Wthread-safety, which our builds with
// clang have, and so is a call of a function with ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_). With g++ the macros
// are empty. absl::Mutex is annotated as well, but Debian's was compiled without ThreadSanitizer, which then
// knows nothing of what it protects.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "absl/base/thread_annotations.h"

namespace siding {

// Not recursive.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  // True: it is held now.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  // For the analysis alone: nothing is checked. Where a callback runs with it held, which cannot be told
  // otherwise.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex until it goes out of scope. It may be given back and taken again meanwhile, and is left alone
// at the end if it is not held then.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { Lock(); }
  // One that is held already, after TryLock().
  MutexLock(Mutex& mutex, std::adopt_lock_t) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex)
      : mutex_(mutex), held_(true) {}
  ~MutexLock() ABSL_UNLOCK_FUNCTION() {
    if (held_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    mutex_.Lock();
    held_ = true;
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    held_ = false;
    mutex_.Unlock();
  }

 private:
  Mutex& mutex_;
  bool held_ = false;
};

// Every wait is called with the mutex held and returns with it held. `condition` is called with it held as
// well: a lambda says so with ABSL_EXCLUSIVE_LOCKS_REQUIRED between its parameters and its body. Without a
// condition a wait may return at any time.
class CondVar {
 public:
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

  template <typename Condition>
  void Wait(Mutex& mutex, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    changed_.wait(held.lock, std::move(condition));
  }
  // True: it has been notified.
  template <typename Span>
  bool WaitFor(Mutex& mutex, const Span& timeout) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    return changed_.wait_for(held.lock, timeout) == std::cv_status::no_timeout;
  }
  // These return what the condition says at the end.
  template <typename Span, typename Condition>
  bool WaitFor(Mutex& mutex, const Span& timeout, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    return changed_.wait_for(held.lock, timeout, std::move(condition));
  }
  template <typename Instant>
  bool WaitUntil(Mutex& mutex, const Instant& end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    return changed_.wait_until(held.lock, end) == std::cv_status::no_timeout;
  }
  template <typename Instant, typename Condition>
  bool WaitUntil(Mutex& mutex, const Instant& end, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Held held(mutex);
    return changed_.wait_until(held.lock, end, std::move(condition));
  }

 private:
  // What std::condition_variable wants of a mutex that somebody else gives back, whatever a condition throws.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable changed_;
};

}  // namespace siding
