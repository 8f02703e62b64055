// What a task is called outside of its agent's own folder: there may be tasks of another cluster with the
// same numbers, of an earlier controller of this one for instance. All such names are made here, and have the
// cluster's in them.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>

#include "common/mutex.h"

namespace siding {

// The name of a cluster, as it is used in others: 16 hex digits.
bool IsClusterName(const std::string& text);
std::string ClusterName(int64_t cluster);

// Which cluster a node belongs to, as its controller says; until one has, a name that the node has drawn.
// Remembered in a file. Thread-safe.
class NodeCluster {
 public:
  explicit NodeCluster(std::string path);
  std::string Name() const;
  // Of the controller that it works for. 0: none has said one since this object was made.
  int64_t Number() const;
  // `cluster`: of the controller that this node works for; 0: it has none. Durable when it returns, if the
  // disk lets it.
  void Join(int64_t cluster);

 private:
  void Remember(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  mutable Mutex mutex_;
  std::string name_ ABSL_GUARDED_BY(mutex_);
  int64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What the job's processes know by name, or their files: the same over the job's whole life, on all its
// nodes. An image says in which cluster its program was begun, so a restore makes the same names.
struct ProgramNames {
  std::string cluster;  // where the program was begun; empty: by a siding whose names had no cluster
  int64_t job = 0;
  int rank = 0;
  auto operator<=>(const ProgramNames&) const = default;  // NOLINT(modernize-use-nullptr): there is none

  // The folder for its temporary files. Apart by user: a folder that another user's job has made must not
  // stop this one.
  std::string Tmpdir(uid_t user) const;
  // The number of its first process in its pid namespace; those after it follow. Programs make names of it
  // that all of the node sees (/dev/shm, /tmp), so it is not the same in any two jobs that are likely to
  // meet.
  int FirstProcess() const;
  // The mark of its shared memory, see agent/checkpoint/shared_memory.h.
  std::string SharedMemoryMark() const;
};

// Of what is one task's alone, and no other incarnation's: its cgroups in the node's folder, and its folder
// for plain files of encrypted images. `task`: "42.1.0"; `cluster`: that started it, or empty, as above.
std::string NameOutside(const std::string& task, const std::string& cluster);

// Of what one order makes in /tmp for the task that is so called outside, and what all of a task's begin
// with.
std::string TemporaryName(const std::string& outside, int64_t op);
std::string TemporaryNames(const std::string& outside);

}  // namespace siding
