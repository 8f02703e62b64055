// The rehearsal of a restore, while the task is frozen for a checkpoint after which it continues: nobody
// waits for its nodes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/rehearsal.h"
#include "agent/checkpoint/stdio.h"
#include "agent/criu/criu.h"
#include "agent/node/rehearsal.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "common/fault.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// The task stands still meanwhile. A disk that is slower than this is no reason to refuse an image.
constexpr Duration kLeastPatience = std::chrono::seconds(10);
constexpr int64_t kBytesInASecond = 100 << 20;

Duration PatienceFor(Bytes memory) {
  return kLeastPatience + std::chrono::seconds(memory.value / kBytesInASecond);
}

// A restore reads it back.
Bytes Swapped(pid_t init) {
  Bytes swapped;
  for (const pid_t pid : ProcessTree(init))
    swapped += Bytes{std::max<int64_t>(0, ReadStatusNumber(pid, "VmSwap")) << 10};
  return swapped;
}

}  // namespace

// A task of a cluster manager's has its terminal and its pipes from there, and one on GPUs would need them
// twice.
bool Task::IsToBeRehearsed(const agent::TaskRecord& record, const v1::Dump& dump) const {
  if (!dump.keep_running() || externally_managed_ || UsesGpus()) return false;
  const bool is_proven = (record.rehearsed() || record.restored()) && record.no_restore().empty();
  return host_.options.rehearsals == Rehearsals::kAlways ||
         (host_.options.rehearsals == Rehearsals::kFirst && !is_proven);
}

// An error: no restore would take the image, or the dump is over. Where it cannot be rehearsed, nothing is
// known against it.
absl::Status Task::Rehearse(const agent::TaskRecord& record, const std::string& image, Duration most,
                            const std::function<bool()>& stop) {
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.rehearse: a restore is about to be rehearsed">());
  const pid_t init = record.init().pid();
  const Bytes memory = TreeResident(init) + Swapped(init);
  std::string why = WhyNotRehearsed(init, memory);
  if (why.empty() && most <= Duration(0)) why = "the dump has taken all of its time";
  if (!why.empty()) {
    NoteNoRehearsal(why);
    return absl::OkStatus();
  }
  agent::ShimRequest request;
  *request.mutable_spec() = record.spec();
  request.set_rank(id_.rank);
  request.mutable_restore()->set_image_folder(image);
  request.mutable_restore()->set_criu_path(host_.criu_path);
  const std::string temporary = TemporaryName(outside_, record.dump().op());
  request.mutable_restore()->set_temporary(temporary);
  request.mutable_restore()->set_pipes(PipesToText(RecordPipes(init)));
  const absl::Status status = RunRehearsal(host_.options.shim_path, RehearsalFolder(), request,
                                           std::min(PatienceFor(memory), most), stop);
  // Of this one alone: the next may be under way by then.
  if (!status.ok())
    host_.leftovers.Add(record.spec().uid(), [temporary] { RemoveTemporary(temporary + "."); });
  if (absl::IsAborted(status)) return status;
  if (!status.ok() && !IsRefusal(status)) {
    NoteNoRehearsal(std::string(status.message()));
    return absl::OkStatus();
  }
  absl::Status verdict;
  if (!status.ok())
    verdict = absl::FailedPreconditionError(absl::StrCat(
        "a restore of it was rehearsed, and CRIU does not take it: ", std::string(status.message())));
  NoteRehearsal(verdict);
  return verdict;
}

// What it has shown holds until the task is started again, or another rehearsal shows something else.
void Task::NoteRehearsal(const absl::Status& status) {
  MutexLock lock(mutex_);
  record_.set_rehearsed(status.ok());
  record_.set_no_restore(std::string(status.message()));
  Persist();
}

// Told once.
void Task::NoteNoRehearsal(const std::string& why) {
  MutexLock lock(mutex_);
  spdlog::info("task {}: a restore is not rehearsed: {}", name_, why);
  auto& notes = *record_.mutable_report()->mutable_notes();
  if (record_.not_rehearsed() || notes.size() >= kMostNotes) return;
  record_.set_not_rehearsed(true);
  *notes.Add() = "a restore of its checkpoints is not rehearsed: " + why;
  Persist();
  Send();
}

}  // namespace siding
