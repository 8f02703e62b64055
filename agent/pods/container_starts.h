// Where who makes a container and the task that the container is to be find each other, in whichever order
// they come.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/pods/messages.h"
#include "common/mutex.h"
#include "common/units.h"

namespace siding {

// A task. Called on any thread; must not call ContainerStarts.
class ContainerOwner {
 public:
  virtual ~ContainerOwner() = default;
  // The container is about to be made. kUnavailable: it is not known yet how; asked again after Ring().
  virtual absl::StatusOr<ContainerStart> OnStarting(const StartingContainer& starting) = 0;
  // It has been made with this first process, or it is not known whether it has (kUnavailable), or it has
  // not.
  virtual void OnMade(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) = 0;
};

// Thread-safe.
class ContainerStarts {
 public:
  // The task of the pod of this uid, from now on until it is withdrawn.
  void Offer(const std::string& pod_uid, ContainerOwner& owner);
  // Returns when no call to it is under way.
  void Withdraw(const std::string& pod_uid, const ContainerOwner& owner);
  // The containers of this pod, which is no task, start from their beginning.
  void Let(const std::string& pod_uid);
  // The pod is being deleted: who waits for its task waits in vain, and keeps its kubelet from ending it. Of
  // those that come later nothing is remembered.
  void Refuse(const std::string& pod_uid);
  // Somebody who said kUnavailable may say something else now.
  void Ring();

  // Waits until the pod's task says how the container is to start, at most so long, and while `goes_on`.
  // kFailedPrecondition: the pod is being deleted, and is no task.
  absl::StatusOr<ContainerStart> Ask(const StartingContainer& starting, Duration patience,
                                     const std::function<bool()>& goes_on);
  void Tell(const StartingContainer& starting, const absl::StatusOr<pid_t>& made);

 private:
  // kUnavailable: there is no answer yet.
  absl::StatusOr<ContainerStart> AnswerTo(const StartingContainer& starting, bool is_refused)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, ContainerOwner*> owners_ ABSL_GUARDED_BY(mutex_);  // by the pod's uid
  std::set<std::string> let_ ABSL_GUARDED_BY(mutex_);                      // uids of pods that are no tasks
  // Those who wait, by their pod's uid, and whether they are refused.
  std::multimap<std::string, bool> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding
