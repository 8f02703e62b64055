// A GPU driver that exists only in memory, for tests. Faults are asked for by the number of the call.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/gpu/gpu_driver.h"
#include "common/mutex.h"

namespace siding {

// Calls may come at the same time; the members are for a test that makes none meanwhile.
class FakeGpuDriver final : public GpuDriver {
 public:
  std::map<pid_t, GpuState> states;
  std::vector<GpuDevice> devices;
  std::vector<std::string> calls;         // "lock 7"; State is not among them
  std::set<size_t> failing;               // calls, counted from 0, that fail and change nothing
  std::set<size_t> failing_after_effect;  // that fail although they did what was asked
  std::set<size_t> late;  // locks for which the driver's time is up: the process waits for a peer

  absl::StatusOr<GpuState> State(pid_t pid) override {
    MutexLock lock(mutex_);
    auto it = states.find(pid);
    return it == states.end() ? GpuState::kUnused : it->second;
  }
  absl::Status Lock(pid_t pid, Duration) override {
    return Do("lock", pid, GpuState::kRunning, GpuState::kLocked);
  }
  absl::Status Checkpoint(pid_t pid, Duration) override {
    return Do("checkpoint", pid, GpuState::kLocked, GpuState::kCheckpointed);
  }
  absl::Status Restore(pid_t pid, const std::vector<GpuMove>&, Duration) override {
    return Do("restore", pid, GpuState::kCheckpointed, GpuState::kLocked);
  }
  absl::Status Unlock(pid_t pid, Duration) override {
    return Do("unlock", pid, GpuState::kLocked, GpuState::kRunning);
  }
  absl::StatusOr<std::vector<GpuDevice>> Devices() override { return devices; }

 private:
  absl::Status Do(const char* what, pid_t pid, GpuState from, GpuState to) {
    MutexLock lock(mutex_);
    const size_t call = calls.size();
    calls.push_back(absl::StrCat(what, " ", pid));
    if (states.at(pid) != from) return absl::FailedPreconditionError(calls.back());
    if (failing.contains(call)) return absl::InternalError(calls.back());
    if (late.contains(call)) return absl::DeadlineExceededError(calls.back());
    states.at(pid) = to;
    if (failing_after_effect.contains(call)) return absl::UnavailableError(calls.back());
    return absl::OkStatus();
  }

  Mutex mutex_;
};

}  // namespace siding
