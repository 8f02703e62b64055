// Which tasks of each job this node knows, so that what a job has by name here is not taken from a later task
// of it when an earlier one is forgotten.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>

#include "agent/os/names.h"
#include "common/mutex.h"

namespace siding {

// Tasks by what is theirs alone (NameOutside()). Thread-safe.
class JobTasks {
 public:
  // `names`: of its program, which may have been begun in another cluster than the task was started in.
  void Set(const std::string& task, const ProgramNames& names, int incarnation) {
    MutexLock lock(mutex_);
    Drop(task);
    by_names_.insert(tasks_[task] = {names, incarnation, task});
  }
  void Remove(const std::string& task) {
    MutexLock lock(mutex_);
    Drop(task);
  }
  // Another one whose program has these names, and that is of no earlier incarnation.
  bool HasLater(const std::string& task, const ProgramNames& names, int incarnation) const {
    MutexLock lock(mutex_);
    auto next = by_names_.lower_bound({names, incarnation, ""});
    if (next != by_names_.end() && next->task == task) ++next;
    return next != by_names_.end() && next->names == names;
  }

 private:
  struct Entry {
    ProgramNames names;
    int incarnation = 0;
    std::string task;
    auto operator<=>(const Entry&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  void Drop(const std::string& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto known = tasks_.find(task);
    if (known == tasks_.end()) return;
    by_names_.erase(known->second);
    tasks_.erase(known);
  }

  mutable Mutex mutex_;
  std::map<std::string, Entry> tasks_ ABSL_GUARDED_BY(mutex_);
  std::set<Entry> by_names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
