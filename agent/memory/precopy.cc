#include "agent/memory/precopy.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "agent/os/processes.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr int kMostRounds = 4;
constexpr int kMostTries = 2;  // to stop them, that fail
// So little is copied within a millisecond or two, for which no round pays.
constexpr uint64_t kLittle = 2 << 20;

}  // namespace

// The first round also takes what a dump has taken that failed.
uint64_t Precopy::ToCopy() const {
  uint64_t pages = 0;
  for (const pid_t pid : pids_) {
    const MemoryTracking::Process& process = tracking_.processes.at(pid);
    pages += process.tracker->CountWritten().value_or(0);
    if (is_first_)
      for (const PageRun& run : process.precopied.ToCopy()) pages += run.pages;
  }
  return pages * PageSize();
}

absl::Status Precopy::Rounds(const std::function<bool()>& stop) {
  if (tracking_.rest_from_rounds > 0) {
    --tracking_.rest_from_rounds;
    return absl::UnavailableError("they were of no use of late");
  }
  uint64_t left = ToCopy();
  int failed = 0;
  for (int round = 0; round < kMostRounds && left > kLittle; ++round) {
    if (stop()) return absl::CancelledError("called off");
    if (IsTooMuch(left)) return absl::UnavailableError("too much of it is new");
    SIDING_ASSIGN_OR_RETURN(const bool copied, Round(stop));
    if (!copied && ++failed == kMostTries) {
      tracking_.rest_from_rounds = kRest;
      return absl::UnavailableError("a thread does not stop");
    }
    const uint64_t before = std::exchange(left, ToCopy());
    if (copied && left * 4 > before * 3)
      return absl::UnavailableError("it is written as fast as it is copied");
  }
  return absl::OkStatus();
}

absl::Status Precopy::OneMore(const std::function<bool()>& stop) {
  const uint64_t left = ToCopy();
  if (left <= kLittle) return absl::OkStatus();
  if (IsTooMuch(left)) return absl::UnavailableError("too much of it is new");
  SIDING_ASSIGN_OR_RETURN(const bool copied, Round(stop));
  return copied ? absl::OkStatus() : absl::UnavailableError("a thread does not stop");
}

// False: they could not be stopped in time.
absl::StatusOr<bool> Precopy::Round(const std::function<bool()>& stop) {
  Laps laps;
  const auto began = std::chrono::steady_clock::now();
  const absl::StatusOr<bool> are_protected = Protect(laps);
  stopped_ =
      std::max(stopped_, std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began));
  for (const auto& [pid, written] : laps) {
    PrecopiedPages& precopied = tracking_.processes.at(pid).precopied;
    precopied.Written(written);
    if (!are_protected.ok()) precopied.Distrust();
    if (!precopied.distrusted()) continue;
    tracking_.rest_from_rounds = kRest;
    spdlog::info("what process {} has written is not known: it is copied in one", pid);
  }
  if (!are_protected.value_or(false)) return are_protected;
  for (const auto& [pid, written] : laps) {
    PrecopiedPages& precopied = tracking_.processes.at(pid).precopied;
    const std::vector<PageRun> runs = is_first_ ? precopied.ToCopy() : written;
    const uint64_t at = to_.bytes();
    std::vector<PageRun> unread;  // it has given them away meanwhile, or moved them
    SIDING_RETURN_IF_ERROR(to_.Take(pid, runs, stop, &unread));
    precopied.Copied(runs, at);
    precopied.Written(unread);
  }
  is_first_ = false;
  SIDING_RETURN_IF_ERROR(
      FaultAt<"agent.dump.precopied: what a tracked task has written is copied, it runs">());
  return true;
}

absl::StatusOr<bool> Precopy::Protect(Laps& laps) {
  bool reached = false;
  const absl::Status status = WhileStopped(init_, tracking_.stop_patience, [&](const StoppedTree& tree) {
    reached = true;
    return ProtectStopped(tree, laps);
  });
  if (!reached && absl::IsDeadlineExceeded(status)) return false;
  SIDING_RETURN_IF_ERROR(status);
  return true;
}

absl::Status Precopy::ProtectStopped(const StoppedTree& tree, Laps& laps) {
  SIDING_RETURN_IF_ERROR(
      FaultAt<"agent.dump.round: the threads of a tracked task are stopped, to copy what it has written">());
  for (const pid_t pid : pids_) {
    MemoryTracking::Process& process = tracking_.processes.at(pid);
    if (!tree.is_held()) return absl::AbortedError("they run");
    if (tree.processes.count(pid) == 0 || process.precopied.distrusted() || !IsAlive(pid, process.start_time))
      continue;
    auto written = process.tracker->NextWritten();
    if (!written.ok()) process.precopied.Distrust();
    laps[pid] = std::move(written).value_or(std::vector<PageRun>());
  }
  return absl::OkStatus();
}

}  // namespace siding
