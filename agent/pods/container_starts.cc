#include "agent/pods/container_starts.h"

#include <chrono>

namespace siding {
namespace {
constexpr auto kLookAgain = std::chrono::milliseconds(200);  // whether who asked is still there
}

void ContainerStarts::Offer(const std::string& pod_uid, ContainerOwner& owner) {
  MutexLock lock(mutex_);
  owners_[pod_uid] = &owner;
  changed_.NotifyAll();
}

void ContainerStarts::Withdraw(const std::string& pod_uid, const ContainerOwner& owner) {
  MutexLock lock(mutex_);
  const auto found = owners_.find(pod_uid);
  if (found != owners_.end() && found->second == &owner) owners_.erase(found);
}

void ContainerStarts::Let(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  let_.insert(pod_uid);
  changed_.NotifyAll();
}

void ContainerStarts::Refuse(const std::string& pod_uid) {
  MutexLock lock(mutex_);
  const auto [first, last] = waiting_.equal_range(pod_uid);
  for (auto one = first; one != last; ++one) one->second = true;
  changed_.NotifyAll();
}

void ContainerStarts::Ring() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

absl::StatusOr<ContainerStart> ContainerStarts::Ask(const StartingContainer& starting, Duration patience,
                                                    const std::function<bool()>& goes_on) {
  const auto end = std::chrono::steady_clock::now() + patience;
  absl::StatusOr<ContainerStart> answer;
  MutexLock lock(mutex_);
  const auto waiting = waiting_.emplace(starting.pod_uid, false);
  for (;;) {
    answer = goes_on() ? AnswerTo(starting, waiting->second) : absl::CancelledError("who asked has gone");
    if (!absl::IsUnavailable(answer.status()) || std::chrono::steady_clock::now() >= end) break;
    changed_.WaitFor(mutex_, kLookAgain);
  }
  waiting_.erase(waiting);
  return answer;
}

absl::StatusOr<ContainerStart> ContainerStarts::AnswerTo(const StartingContainer& starting, bool is_refused) {
  if (const auto owner = owners_.find(starting.pod_uid); owner != owners_.end())
    return owner->second->OnStarting(starting);
  if (let_.contains(starting.pod_uid)) return ContainerStart();
  if (is_refused) return absl::FailedPreconditionError("the pod is being deleted");
  return absl::UnavailableError(
      "siding's controller has not said what this pod is to it: are the controller and this node's agent "
      "connected?");
}

void ContainerStarts::Tell(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) {
  MutexLock lock(mutex_);
  if (const auto found = owners_.find(starting.pod_uid); found != owners_.end())
    found->second->OnMade(starting, made);
}

}  // namespace siding
