// Which tasks of each job this node knows, so that what a job has by name here is not taken from a later task
// of it when an earlier one is forgotten.
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "common/ids.h"
#include "common/mutex.h"

namespace siding {

// Thread-safe.
class JobTasks {
 public:
  // `cluster`: that started the task: numbers are of one cluster.
  void Add(const std::string& cluster, const TaskId& task) {
    MutexLock lock(mutex_);
    tasks_.insert(Key(cluster, task));
  }
  void Remove(const std::string& cluster, const TaskId& task) {
    MutexLock lock(mutex_);
    tasks_.erase(Key(cluster, task));
  }
  // One of the same rank, and of a later incarnation.
  bool HasLater(const std::string& cluster, const TaskId& task) const {
    MutexLock lock(mutex_);
    const auto next = tasks_.upper_bound(Key(cluster, task));
    return next != tasks_.end() && *next == Key(cluster, {task.job, std::get<3>(*next), task.rank});
  }

 private:
  using Entry = std::tuple<std::string, int64_t, int, int>;  // cluster, job, rank, incarnation
  static Entry Key(const std::string& cluster, const TaskId& task) {
    return {cluster, task.job.value(), task.rank, task.incarnation};
  }

  mutable Mutex mutex_;
  std::set<Entry> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
