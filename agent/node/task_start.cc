// Launch and restore: the shim does the work, this tells it what to do and waits for its word.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "agent/checkpoint/dump.h"
#include "agent/memory/share_pages.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/shim/shim_process.h"
#include "agent/task/json_file.h"
#include "common/fault.h"
#include "common/message_limits.h"
#include "common/since.h"
#include "common/status.h"
#include "spdlog/spdlog.h"
#include "store/disk.h"
#include "store/parents.h"

namespace siding {
namespace {

// A restore that takes longer hangs; the largest image is read faster.
constexpr Duration kStartPatience = std::chrono::minutes(30);
// The shim of a task that a cluster manager starts is started at once, or not at all.
constexpr Duration kShimPatience = std::chrono::seconds(10);
constexpr auto kProgressInterval = std::chrono::milliseconds(200);

// Numbers of jobs may be given again, and steps are known by numbers: no user may get another user's
// processes, and no step those of another. kPermissionDenied if they are.
absl::Status CheckOwner(const Manifest& image, const v1::JobSpec& spec) {
  const auto says_other = [&](const char* key, const std::string& ours) {
    const auto theirs = image.metadata.find(key);
    return theirs != image.metadata.end() && !ours.empty() && theirs->second != ours;
  };
  const std::string name = "checkpoint " + image.key.checkpoint.value();
  if (says_other(kMetadataUser, std::to_string(spec.uid())))
    return absl::PermissionDeniedError(name + " is another user's");
  if (says_other(kMetadataCommand, spec.command_checksum()))
    return absl::PermissionDeniedError(name + " is of another command");
  return absl::OkStatus();
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

void Task::DoLaunch(const v1::ToAgent& command) {
  const v1::JobSpec& spec = command.launch().spec();
  agent::ShimRequest request;
  const bool restart = command.launch().restart_after_save() && !spec.app().restart_command().empty();
  *request.mutable_command() = restart ? spec.app().restart_command() : spec.command();
  *request.mutable_spec() = spec;
  StartAndWait(std::move(request));
}

void Task::DoRestore(const v1::ToAgent& command) {
  agent::ShimRequest request;
  *request.mutable_spec() = command.restore().spec();
  bool damaged = false;
  {
    MutexLock lock(mutex_);
    restoring_ = {};
  }
  const auto start = std::chrono::steady_clock::now();
  absl::Status status = PrepareImage(command, request, damaged);
  // What was damaged has been replaced meanwhile, as by siding-store repair.
  if (absl::IsAborted(status)) {
    RemoveRestoreFolders();
    damaged = false;
    status = PrepareImage(command, request, damaged);
  }
  if (!status.ok()) {
    RemoveRestoreFolders();
    if (externally_managed_ && absl::IsPermissionDenied(status)) return StartFromBeginning(command, status);
    if (ready_) std::exchange(ready_, nullptr)(status);
    MutexLock lock(mutex_);
    // One that this node does not find may lie in a file system that is not mounted here.
    const bool outside = absl::IsPermissionDenied(status) || absl::IsNotFound(status);
    Observe(task::StartFailed{.error = std::string(status.message()),
                              .image_damaged = damaged,
                              .node_problem = !damaged && !outside,
                              .outside_problem = !damaged && outside})
        .IgnoreError();
    return;
  }
  {
    MutexLock lock(mutex_);
    restoring_.End("verified");
  }
  StartAndWait(std::move(request));
  MutexLock lock(mutex_);
  if (machine_.phase() != v1::RUNNING) return;
  restoring_.End("resumed");
  spdlog::info("task {}: restored from checkpoint {}: {}", name_, command.restore().checkpoint(),
               restoring_.ToString());
  // How long others take says nothing of the tier.
  host_.rates->Add(MediumOf(command.restore().tier()), Transfer::kRestore,
                   Bytes{record_.report().image_bytes()}, Since(start) - restoring_.Of(kWaitedForOthers));
}

// Of an externally managed task, whose checkpoint was found by its number, and is not its own.
void Task::StartFromBeginning(const v1::ToAgent& command, const absl::Status& why) {
  agent::ShimRequest request;
  *request.mutable_spec() = command.restore().spec();
  request.set_notice(absl::StrCat(std::string(why.message()), "; the command starts from its beginning"));
  {
    MutexLock lock(mutex_);
    SetBegunIn(cluster_);
    Observe(task::StartsOver{}).IgnoreError();
  }
  StartAndWait(std::move(request));
}

absl::Status Task::PrepareImage(const v1::ToAgent& command, agent::ShimRequest& request, bool& damaged) {
  if (!host_.criu) return absl::UnavailableError("no restore on this node: " + host_.criu_problem);
  if (const std::string why = host_.WhyNoCriuFor(command.restore().spec().uid()); !why.empty())
    return absl::FailedPreconditionError(why);
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.restore: an image is about to be verified">());
  const v1::Restore& restore = command.restore();
  SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(restore.tier()));
  const ImageKey key{CheckpointId(restore.checkpoint()), id_.rank};
  auto told = std::chrono::steady_clock::now();
  const auto begun = told;
  auto found = store->Read(key);
  const Bytes total = found.ok() ? found->TotalSize() : Bytes{};
  // One that has been replaced is not asked whose it is: Verify() refuses it.
  const bool as_made =
      restore.image_digest().empty() || (found.ok() && found->digest == restore.image_digest());
  if (found.ok() && as_made) {
    SIDING_RETURN_IF_ERROR(CheckOwner(*found, restore.spec()));
    if (const std::string why = host_.WhyNotRestored(found->metadata); !why.empty())
      return absl::FailedPreconditionError(why);
    if (absl::Status known = RememberImage(*found); !known.ok()) {
      damaged = true;
      return Annotate(known, "checkpoint " + restore.checkpoint());
    }
  }
  const auto tell = [&](Bytes done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - told < kProgressInterval) return true;
    told = now;
    v1::FromAgent message;
    v1::Progress& progress = *message.mutable_progress();
    progress.set_op(command.op());
    *progress.mutable_task() = ref_;
    progress.set_bytes_done(done.value);
    progress.set_bytes_total(total.value);
    progress.set_bytes_per_second(static_cast<double>(done.value) /
                                  std::chrono::duration<double>(now - begun).count());
    host_.sink.Send(std::move(message));
    return true;
  };
  SIDING_ASSIGN_OR_RETURN(const UniqueFd held, store->Hold(key));
  const auto manifest = store->Verify(key, {.progress = tell, .digest = restore.image_digest()});
  if (!manifest.ok()) {
    damaged = absl::IsDataLoss(manifest.status());
    const absl::Status why = Annotate(manifest.status(), "checkpoint " + restore.checkpoint());
    // An externally managed task continues from the newest image that is there.
    if (damaged && externally_managed_) SIDING_RETURN_IF_ERROR(store->Quarantine(key, held));
    return why;
  }
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.restore.verified: an image is verified">());
  agent::ShimRestore& order = *request.mutable_restore();
  auto folder = store->Decrypt(key, PlainFolder());
  if (!folder.ok()) {
    damaged = absl::IsDataLoss(folder.status());
    MutexLock lock(mutex_);
    record_.mutable_report()->set_no_key(absl::IsFailedPrecondition(folder.status()));
    return Annotate(folder.status(), "checkpoint " + restore.checkpoint());
  }
  auto united = Unite(*manifest, *folder, *store);
  if (!united.ok()) {
    damaged = absl::IsDataLoss(united.status());
    if (damaged && externally_managed_) SIDING_RETURN_IF_ERROR(store->Quarantine(key, held));
    return united.status();
  }
  order.set_criu_folder(*std::move(united));
  order.set_image_folder(*std::move(folder));
  order.set_criu_path(host_.criu_path);
  order.set_temporary(TemporaryName(outside_, command.op()));
  const auto pipes = manifest->metadata.find(kMetadataPipes);
  if (pipes != manifest->metadata.end()) order.set_pipes(pipes->second);
  if (const auto shared = manifest->metadata.find(kMetadataShared); shared != manifest->metadata.end())
    order.set_shared_memory(shared->second);
  const auto files = manifest->metadata.find(kMetadataFiles);
  order.set_files(files == manifest->metadata.end() ? "[]" : files->second);
  if (const auto threads = manifest->metadata.find(kMetadataThreads); threads != manifest->metadata.end())
    order.set_threads(threads->second);
  if (const auto held = manifest->metadata.find(kMetadataHeld); held != manifest->metadata.end())
    order.set_held(held->second);
  MutexLock lock(mutex_);
  record_.mutable_report()->set_image_bytes(UsedSize(*manifest).value);
  if (const auto gpu = manifest->metadata.find(kMetadataGpu); gpu != manifest->metadata.end()) {
    SIDING_ASSIGN_OR_RETURN(*record_.mutable_gpu(), FromJson<agent::GpuRecord>(gpu->second));
    record_.mutable_gpu()->clear_held();
    record_.mutable_gpu()->clear_inherited();
    record_.mutable_gpu()->clear_refusals();
  }
  return absl::OkStatus();
}

// The folder for CRIU. No error says that somebody may not, or that something was not found: that would be
// said of what is outside of the image.
absl::StatusOr<std::string> Task::Unite(const Manifest& manifest, const std::string& folder,
                                        const ImageStore& store) {
  if (store::ParentsOf(manifest) == 0) return folder;
  // Over a network each byte would go there, and come back. Where the local tier does not take it after all,
  // as when others are restored at the same time, there is room beside the image.
  const auto local = host_.Store(v1::LOCAL);
  const Bytes size = manifest.TotalSize();
  const bool rather_local = !store::IsOnThisMachine(folder) && local.ok() && (*local)->IsOnDisk() &&
                            (*local)->FreeSpace().value_or(Bytes{}) > size + size;
  absl::StatusOr<std::string> united = UniteIn(rather_local ? **local : store, manifest, folder);
  if (rather_local && !united.ok() && !absl::IsDataLoss(united.status()) && !Interrupted())
    united = UniteIn(store, manifest, folder);
  if (united.ok()) return united;
  const std::string why = absl::StrCat("checkpoint ", manifest.key.checkpoint.value(), ": ",
                                       std::string(united.status().message()));
  return absl::IsDataLoss(united.status()) ? absl::DataLossError(why) : absl::InternalError(why);
}

// It is remembered before it is made: this agent may die.
absl::StatusOr<std::string> Task::UniteIn(const ImageStore& where, const Manifest& manifest,
                                          const std::string& folder) {
  const std::string united = where.RestoreFolder(outside_);
  {
    MutexLock lock(mutex_);
    record_.set_united(united);
    SIDING_RETURN_IF_ERROR(PersistDurably());
  }
  SIDING_RETURN_IF_ERROR(UnitePages(manifest, folder, united, [this] { return Interrupted(); }));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.restore.united: an image has been made whole for its restore">());
  spdlog::info("task {}: its image is made whole in {}", name_, united);
  return united;
}

// For the shim, whatever comes of the start; and before anything has the names that the image knows.
absl::Status Task::RememberImage(const Manifest& manifest) {
  const auto text = [&](const char* key) {
    const auto found = manifest.metadata.find(key);
    return found == manifest.metadata.end() ? std::string() : found->second;
  };
  const std::string cluster = text(kMetadataCluster);
  if (!cluster.empty() && !IsClusterName(cluster))
    return absl::DataLossError("the manifest's cluster: expected 16 hex digits");
  MutexLock lock(mutex_);
  SetBegunIn(cluster);
  if (int number = 0; absl::SimpleAtoi(text(kMetadataIncarnation), &number))
    record_.set_image_incarnation(number);
  Persist();
  return absl::OkStatus();
}

void Task::StartAndWait(agent::ShimRequest request) {
  request.set_job(id_.job.value());
  request.set_rank(id_.rank);
  request.set_init_path(host_.options.init_path);
  request.set_cluster(cluster_);
  request.set_begun_in(Record().begun_in());
  bool no_gpu = false;
  const auto start = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.start: a task is about to be given what it needs">());
    const absl::Status gpus = TakeGpus();
    no_gpu = absl::IsResourceExhausted(gpus);
    SIDING_RETURN_IF_ERROR(gpus);
    if (host_.AssignsGpus() && !externally_managed_)
      request.set_visible_gpus(absl::StrJoin(Record().gpu().held(), ","));
    // One of a task of the same name that was not removed may be frozen.
    freezer().RemoveCgroup(outside_).IgnoreError();
    SIDING_ASSIGN_OR_RETURN(*request.mutable_cgroup(), freezer().MakeCgroup(outside_));
    request.set_shim_cgroup(freezer().ShimCgroupPath(outside_));
    SIDING_RETURN_IF_ERROR(MakeFence(request));
    if (request.spec().keep_connections()) SIDING_RETURN_IF_ERROR(PlanNetwork(*request.mutable_network()));
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.start.cgroup: a task's cgroup is made">());
    SIDING_RETURN_IF_ERROR(WriteJsonFile(folder_ + "/request.json", request, 0600));
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.start.request: the shim's orders are written">());
    if (ready_) std::exchange(ready_, nullptr)(absl::OkStatus());
    SIDING_ASSIGN_OR_RETURN(UniqueFd shim,
                            externally_managed_ ? AwaitShim() : StartShim(host_.options.shim_path, folder_));
    FaultHere<"agent.start.shim: a task's shim is started">();
    Watch(std::move(shim));
    return absl::OkStatus();
  };
  const absl::Status status = start();
  status.ok() ? AwaitStart() : FailStart(status, no_gpu);
}

// Before there was a shim.
void Task::FailStart(const absl::Status& why, bool no_gpu) {
  RemoveRestoreFolders();
  if (ready_) std::exchange(ready_, nullptr)(why);
  MutexLock lock(mutex_);
  Observe(task::StartFailed{.error = std::string(why.message()), .no_gpu = no_gpu, .node_problem = true})
      .IgnoreError();
}

void Task::ExpectShim(v1::ToAgent start, const GpuAllocation& gpus, std::function<void(absl::Status)> ready) {
  {
    MutexLock lock(mutex_);
    record_.set_externally_managed(true);
    CopyFacts();
    NoteAllocatedGpus(gpus, start.has_restore() ? *start.mutable_restore()->mutable_spec()
                                                : *start.mutable_launch()->mutable_spec());
    ready_ = std::move(ready);
  }
  Execute(start);
}

absl::StatusOr<UniqueFd> Task::AwaitShim() {
  absl::StatusOr<UniqueFd> shim = absl::UnknownError("");
  PollUntil(
      [&] {
        shim = FindShim(folder_);
        return shim.ok() || host_.stopping;
      },
      kShimPatience);
  return shim;
}

void Task::AwaitStart() {
  const std::string running_path = folder_ + "/running.json";
  const auto decided = [&] {
    if (Exists(running_path) || Exists(folder_ + "/failed.json")) return true;
    NoteRestored();
    // A kill that waits for its turn: what there is so far, CRIU included, ends, and the shim says so.
    if (interrupt_) {
      {
        MutexLock lock(mutex_);
        Observe(task::KillBegun{}).IgnoreError();
      }
      freezer().KillAll(outside_, LivingInit(Init()));
    }
    MutexLock lock(mutex_);
    // The agent is stopping: the shim runs on, and is found again.
    return machine_.ended() || host_.stopping;
  };
  bool in_time = false;
  // One that has been restored and waits for others does not hang.
  do in_time = PollUntil(decided, kStartPatience);
  while (!in_time && AwaitsOthers());
  FaultHere<"agent.started: the shim has said that its task runs, or why not">();
  // A restore that continues without us needs its files; the next agent finds it.
  if (!host_.stopping) RemoveRestoreFolders();
  const auto running = ReadJsonFile<agent::ShimRunning>(running_path);
  if (running.ok()) return OnStarted(*running);
  if (!in_time) EndShim(folder_).IgnoreError();
  if (!EndAll()) return;  // what a shim or a CRIU that died on the way has left
  MutexLock lock(mutex_);
  const auto word = ReadJsonFile<agent::ShimFailed>(folder_ + "/failed.json");
  task::StartFailed seen{.node_problem = !word.ok() || word->node_problem(),
                         .outside_problem = word.ok() && word->outside_problem(),
                         .image_refused = word.ok() && word->image_refused()};
  if (word.ok())
    seen.error = word->message();
  else if (!in_time)
    seen.error = "nothing came of it in half an hour";
  else
    seen.error = "siding-shim ended without an answer; see " + folder_ + "/shim.log";
  Observe(seen).IgnoreError();
}

// A restored task runs only when it is back on its GPUs as well.
void Task::OnStarted(const agent::ShimRunning& running) {
  bool drained = false;
  {
    MutexLock lock(mutex_);
    *record_.mutable_init() = running.init();
    record_.mutable_report()->set_started_us(running.started_us());
    auto& notes = *record_.mutable_report()->mutable_notes();
    notes = running.notes();
    if (notes.size() > kMostNotes) notes.DeleteSubrange(kMostNotes, notes.size() - kMostNotes);
    if (running.has_endpoint()) *record_.mutable_report()->mutable_endpoint() = running.endpoint();
    drained = record_.gpu().drained();
  }
  const absl::Status status = ReturnToGpus();
  if (!status.ok()) {
    if (externally_managed_) {
      MutexLock lock(mutex_);
      record_.set_put_off(true);  // for the shim, which would take it for the job's own end
      Persist();
    }
    freezer().KillAll(outside_, running.init().pid());
    WaitEnded(kEndPatience);
  }
  MutexLock lock(mutex_);
  if (drained) record_.mutable_report()->set_started_us(ToMicros(host_.clock.Now()));
  if (status.ok()) return Observe(task::Started{}).IgnoreError();
  // Else the driver refused this very state.
  const bool no_gpu = !absl::IsInternal(status);
  Observe(task::StartFailed{.error = std::string(status.message()), .no_gpu = no_gpu}).IgnoreError();
}

}  // namespace siding
