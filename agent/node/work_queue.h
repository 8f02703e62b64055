// Work in the background, one piece after another.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "common/mutex.h"

namespace siding {

// One thread for what may take long and belongs to no task. Thread-safe. The destructor drops what has not
// begun. Its callers bound the queue: the controller asks for one reading, one deletion and one copy of an
// image at a time.
class WorkQueue {
 public:
  WorkQueue() : thread_([this] { Run(); }) {}
  ~WorkQueue() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    changed_.NotifyAll();
    thread_.join();
  }
  void Add(std::function<void()> work) {
    {
      MutexLock lock(mutex_);
      queue_.push_back(std::move(work));
    }
    changed_.NotifyAll();
  }

 private:
  void Run() {
    MutexLock lock(mutex_);
    for (;;) {
      changed_.Wait(mutex_,
                    [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.Unlock();
      work();
      lock.Lock();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace siding
