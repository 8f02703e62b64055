#include "agent/pods/container_starts.h"

#include <chrono>

#include "absl/strings/str_cat.h"

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

void ContainerStarts::Ring() {
  MutexLock lock(mutex_);
  changed_.NotifyAll();
}

absl::StatusOr<ContainerStart> ContainerStarts::Ask(const StartingContainer& starting, Duration patience,
                                                    const std::function<bool()>& goes_on) {
  const auto end = std::chrono::steady_clock::now() + patience;
  absl::Status last = absl::UnavailableError(
      "siding's controller has not said what this pod is to it: are the controller and this node's agent "
      "connected?");
  MutexLock lock(mutex_);
  while (goes_on()) {
    if (const auto found = owners_.find(starting.pod_uid); found != owners_.end()) {
      absl::StatusOr<ContainerStart> start = found->second->OnStarting(starting);
      if (!absl::IsUnavailable(start.status())) return start;
      last = start.status();
    } else if (let_.contains(starting.pod_uid)) {
      return ContainerStart();
    }
    if (std::chrono::steady_clock::now() >= end) return last;
    changed_.WaitFor(mutex_, kLookAgain);
  }
  return absl::CancelledError("who asked has gone");
}

void ContainerStarts::Tell(const StartingContainer& starting, const absl::StatusOr<pid_t>& made) {
  MutexLock lock(mutex_);
  if (const auto found = owners_.find(starting.pod_uid); found != owners_.end())
    found->second->OnMade(starting, made);
}

}  // namespace siding
