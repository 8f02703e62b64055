#include "agent/checkpoint/dump.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/connections.h"
#include "agent/checkpoint/dump_steps.h"
#include "agent/checkpoint/open_files.h"
#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/queues.h"
#include "agent/checkpoint/recreated_names.h"
#include "agent/checkpoint/repair.h"
#include "agent/checkpoint/shared_memory.h"
#include "agent/checkpoint/stdio.h"
#include "agent/checkpoint/thread_settings.h"
#include "agent/checkpoint/tracers.h"
#include "agent/memory/share_pages.h"
#include "agent/memory/tracked_dump.h"
#include "agent/os/processes.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/laps.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/units.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

using Steady = std::chrono::steady_clock;

constexpr Duration kEndPatience = std::chrono::seconds(10);
constexpr Duration kUntracedPatience = std::chrono::seconds(10);
// What is written while other ranks are waited for is copied so often, so that little is left for the stop.
constexpr Duration kCopyAgainAfter = std::chrono::seconds(1);
// What was found of a job's connections before it was stopped counts for so long.
constexpr Duration kConnectionsAreKnown = std::chrono::seconds(2);
// A rank stands still for others for so long, or as long as it is expected to take to write all of it.
constexpr Duration kMostStill = std::chrono::seconds(30);
constexpr Duration kMostStillToLeave = std::chrono::hours(1);
// Until the others' images count; then it runs on.
constexpr Duration kMostStillSaved = std::chrono::minutes(10);
// Before the next try, where what stood in the way passes by itself: a server that is busy accepts what waits
// for it as soon as it runs again.
constexpr Duration kPauses[] = {std::chrono::milliseconds(100), std::chrono::milliseconds(200),
                                std::chrono::milliseconds(500)};

absl::Status GiveFolder(const std::string& folder, uid_t uid, gid_t gid) {
  if (lchown(folder.c_str(), uid, gid) != 0) return ErrnoError(errno, "chown " + folder);
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    struct stat info = {};
    // Files of earlier images are root's, and stay as they are.
    if (lstat(path.c_str(), &info) == 0 && info.st_uid == uid && info.st_gid == gid) continue;
    if (lchown(path.c_str(), uid, gid) != 0) return ErrnoError(errno, "chown " + path);
  }
  return absl::OkStatus();
}

// What a disk answers that is full or fails. Others, as of a user who may not, say nothing of the disk.
bool IsOfTheDisk(int error) {
  return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO || error == ESTALE;
}

// The file system of the folder takes nothing more.
bool IsRefusing(const std::string& folder) {
  const std::string path = folder + "/trial", text(1 << 20, '\n');
  bool refuses = false;
  {
    const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const bool taken = file.valid() && WriteAll(file, text, path).ok() && fsync(file.get()) == 0;
    refuses = !taken && (file.valid() || IsOfTheDisk(errno));
  }
  unlink(path.c_str());
  return refuses;
}

// The processes run again, and may have met it already.
absl::Status AfterRepair(const absl::Status& status, int connections) {
  if (connections == 0) return status;
  return Reworded(status, absl::StrCat(std::string(status.message()), "; criu had left ", connections,
                                       " of its sockets in repair mode, which is ended"));
}

// What has come between the look beforehand and the freeze: its own node would not restore the image.
absl::Status CheckNeed(const NeedOfOurs& need, CriuKind criu) {
  if (need.why.empty() || criu == CriuKind::kOurs) return absl::OkStatus();
  return need.passes ? PassingError(need.why) : absl::FailedPreconditionError(need.why);
}

// One try. What its steps have in common, and what has become of it.
class DumpOnce {
 public:
  DumpOnce(Criu& criu, ImageStore& store, const DumpPlan& plan, DumpObserver& observer,
           const std::atomic<bool>& abandon)
      : criu_(criu), store_(store), plan_(plan), observer_(observer), abandon_(abandon) {}

  absl::Status Run();

 private:
  std::optional<Manifest> Base() const;
  absl::Status Begin();
  const ImageStore& Scratch() const;
  CriuDump ForCriu();
  // Before the processes are stopped: as little as possible is to be left for then, and other ranks have to
  // be waited for.
  absl::Status Prepare(const StillHeld& running);
  // While the processes are frozen: all of the image, but that it is whole.
  absl::Status Capture(const StillHeld& held);
  absl::Status CaptureTracked(const StillHeld& held);
  absl::Status AwaitStop(const StillHeld& running, const std::function<bool()>& stop);
  absl::Status AwaitOthers(DumpBarrier barrier, const std::string& what, const StillHeld& held);
  absl::Status AwaitRunOn(const StillHeld& held);
  absl::Status AwaitLeave(const StillHeld& held);
  absl::Status HoldPackets(const StillHeld& held);
  bool IsCalledOff() const { return !observer_.WhyStopped().ok(); }
  Steady::time_point PartOfWhatIsLeft(int part) const;
  SharingLimits Limits() const;
  absl::Status Share();
  // Its checksums, what is decided, and that it counts. The processes are frozen while `held` is OK, or run.
  absl::Status Finish(const StillHeld& held);
  void LetGo();
  absl::Status Conclude(absl::Status status);

  Criu& criu_;
  ImageStore& store_;
  const DumpPlan& plan_;
  DumpObserver& observer_;
  const std::atomic<bool>& abandon_;

  UniqueFd init_;  // while it lives: at the end its number may be another process's
  std::unique_ptr<ImageDraft> draft_;
  std::optional<TrackedDump> tracked_;  // after the draft, which it uses
  Mutex capturing_;
  std::vector<SharedMemoryFile> shared_;
  std::map<std::string, std::string> metadata_;
  bool written_ = false, committed_ = false;
  bool others_may_run_ = false;  // ranks that are dumped with it
  Steady::time_point stopped_;   // all of them, or before that
  Laps laps_;                    // the dumping thread's
  std::atomic<bool> committing_{false};
  std::atomic<int> repaired_{0};
};

std::optional<Manifest> DumpOnce::Base() const {
  if (!plan_.finish_behind || !plan_.base) return std::nullopt;
  absl::StatusOr<Manifest> base = store_.Read(*plan_.base);
  return base.ok() ? std::optional(*std::move(base)) : std::nullopt;
}

absl::Status DumpOnce::Begin() {
  if (std::string why = WhyNotDumpable(plan_.init, plan_.criu); !why.empty())
    return absl::FailedPreconditionError(why);
  absl::StatusOr<UniqueFd> opened = OpenPidfd(plan_.init);
  if (absl::IsNotFound(opened.status())) return absl::AbortedError("the task has ended");
  SIDING_ASSIGN_OR_RETURN(init_, std::move(opened));
  const std::optional<Manifest> base = Base();
  SIDING_ASSIGN_OR_RETURN(draft_, store_.Begin(plan_.key, base ? &*base : nullptr));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.draft: the folder of a new image is made">());
  // CRIU as the job's user must be able to write there, but afterwards only root may.
  if (plan_.user.as_user) SIDING_RETURN_IF_ERROR(GiveFolder(draft_->path(), plan_.user.uid, plan_.user.gid));
  MemoryTracking* const tracking = plan_.tracking;
  if (tracking == nullptr) return absl::OkStatus();
  // The first has no base; in a tier where nothing is shared none has.
  if (plan_.keep_running) tracking->without_base = draft_->base() == nullptr ? tracking->without_base + 1 : 0;
  const bool pays = plan_.finish_behind && plan_.criu.kind == CriuKind::kOurs &&
                    tracking->without_base <= 1 && !tracking->given_up;
  // It takes a moment, of which a job that leaves has none to lose.
  if (!pays && plan_.keep_running) tracking->Forget();
  if (!pays || (draft_->base() == nullptr && !tracking->since)) return absl::OkStatus();
  tracked_.emplace(*tracking, plan_.init, plan_.key, *draft_, Scratch());
  // After the folder was given away: files of the base come into it.
  return tracked_->Begin();
}

// For half of the job's memory, and no more is copied there; others have their share of it, too.
const ImageStore& DumpOnce::Scratch() const {
  if (draft_->is_near() || draft_->base() == nullptr || plan_.near_store == nullptr) return store_;
  const Bytes most = draft_->base()->TotalSize();
  return plan_.near_store->IsOnDisk() && plan_.near_store->FreeSpace().value_or(Bytes{}) > most + most
             ? *plan_.near_store
             : store_;
}

CriuDump DumpOnce::ForCriu() {
  CriuDump dump;
  dump.pid = plan_.init;
  dump.image_folder = draft_->path();
  dump.work_folder = plan_.work_folder;
  dump.cgroup = plan_.cgroup;
  dump.hold = plan_.hold;
  dump.keep_running = plan_.keep_running;
  dump.own_network = plan_.packets != nullptr;
  dump.skip_network_lock = dump.own_network || ConnectionsStayInside(plan_.init);
  dump.user = plan_.user;
  dump.abandon = &abandon_;
  if (tracked_) {
    dump.left_out = tracked_->LeftOut();
    dump.known_areas = tracked_->AreaFiles();
    dump.to_track = tracked_->ToTrack();
    dump.on_userfaultfd = [this](pid_t pid, UniqueFd fd) { tracked_->Give(pid, std::move(fd)); };
  }
  if (tracked_ || plan_.together)
    dump.on_ready = [this](const StillHeld& running) { return Prepare(running); };
  // Where they are not held the processes run the moment that CRIU is ended, so nothing else is waited for.
  // Where they are, those that may be about to end do not run on.
  dump.on_end = [this] {
    if (!committing_ || plan_.keep_running || plan_.hold.empty()) LetGo();
  };
  // What comes later comes from outside, to a job that is away, as after the dump. They may read it at the
  // next try.
  const auto asked = Steady::now();
  dump.on_stopped = [this, asked,
                     stays_inside = dump.skip_network_lock](const StillHeld& held) -> absl::Status {
    stopped_ = Steady::now();
    laps_.End("frozen");
    const std::string queued = FindQueued(plan_.init);
    if (!queued.empty()) return PassingError(queued);
    if (plan_.packets != nullptr) return HoldPackets(held);
    // It takes a while to ask that, and is not asked again unless the processes have run for long since.
    const bool is_old = Steady::now() - asked > kConnectionsAreKnown;
    return is_old && stays_inside && !ConnectionsStayInside(plan_.init)
               ? PassingError("its connections have changed just now")
               : absl::OkStatus();
  };
  return dump;
}

absl::Status DumpOnce::Prepare(const StillHeld& running) {
  const auto until = PartOfWhatIsLeft(4);
  const auto stop = [&] { return abandon_ || IsCalledOff() || !running().ok(); };
  // At another try the others stand still already.
  const bool is_waited_for =
      plan_.together && observer_.MayPass(DumpBarrier::kStop, Duration(0), running).value_or(false);
  if (tracked_ && !is_waited_for) tracked_->Prepare([&] { return stop() || Steady::now() > until; });
  laps_.End("prepared");
  if (plan_.together) SIDING_RETURN_IF_ERROR(AwaitStop(running, stop));
  stopped_ = Steady::now();
  return observer_.WhyStopped();
}

absl::Status DumpOnce::AwaitStop(const StillHeld& running, const std::function<bool()>& stop) {
  SIDING_RETURN_IF_ERROR(observer_.OnBarrier(DumpBarrier::kStop));
  const auto may_pass = [&](Duration most) { return observer_.MayPass(DumpBarrier::kStop, most, running); };
  for (;;) {
    SIDING_ASSIGN_OR_RETURN(const bool all, may_pass(kCopyAgainAfter));
    if (all) {
      laps_.End(kWaitedForOthers);
      return absl::OkStatus();
    }
    // Nobody who stands still waits for a copy.
    if (tracked_) tracked_->CopyAgain([&] { return stop() || may_pass(Duration(0)).value_or(true); });
  }
}

absl::Status DumpOnce::AwaitRunOn(const StillHeld& held) {
  if (!plan_.together) return absl::OkStatus();
  others_may_run_ = true;
  return AwaitOthers(DumpBarrier::kRunOn, "captured", held);
}

// Its image is of no use without those of the others.
absl::Status DumpOnce::AwaitLeave(const StillHeld& held) {
  SIDING_RETURN_IF_ERROR(observer_.OnBarrier(DumpBarrier::kLeave));
  SIDING_ASSIGN_OR_RETURN(const bool all, observer_.MayPass(DumpBarrier::kLeave, kMostStillSaved, held));
  laps_.End(kWaitedForOthers);
  if (all) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("its other ranks could not be saved within ", FormatDuration(kMostStillSaved)));
}

absl::Status DumpOnce::HoldPackets(const StillHeld& held) {
  if (plan_.holds_together) {
    // A kernel goes on to send what is queued, and peers that have come to the barrier hold packets soon.
    plan_.packets->Drain();
    laps_.End("drained");
    SIDING_RETURN_IF_ERROR(AwaitOthers(DumpBarrier::kHold, "stopped", held));
  }
  SIDING_RETURN_IF_ERROR(plan_.packets->Hold());
  laps_.End("held");
  return absl::OkStatus();
}

// The processes are stopped.
absl::Status DumpOnce::AwaitOthers(DumpBarrier barrier, const std::string& what, const StillHeld& held) {
  SIDING_RETURN_IF_ERROR(observer_.OnBarrier(barrier));
  // One that leaves stands still for no longer than it would without them.
  const auto until = PartOfWhatIsLeft(plan_.keep_running ? 3 : 2);
  Steady::duration most = plan_.keep_running ? kMostStill : kMostStillToLeave;
  if (until != Steady::time_point::max()) most = std::max(most, until - Steady::now());
  SIDING_ASSIGN_OR_RETURN(const bool all,
                          observer_.MayPass(barrier, std::chrono::duration_cast<Duration>(most), held));
  laps_.End(kWaitedForOthers);
  return all ? absl::OkStatus()
             : absl::DeadlineExceededError(
                   absl::StrCat("its other ranks could not be ", what, " within ",
                                FormatDuration(std::chrono::duration_cast<Duration>(most))));
}

// Memory must not be registered while it runs: who would let go of it meanwhile waits.
absl::Status DumpOnce::CaptureTracked(const StillHeld& held) {
  MutexLock lock(capturing_);
  const absl::Status captured = tracked_->Capture([&] { return IsCalledOff() || !held().ok(); });
  if (!absl::IsCancelled(captured)) return captured;
  SIDING_RETURN_IF_ERROR(observer_.WhyStopped());
  SIDING_RETURN_IF_ERROR(held());
  return captured;
}

absl::Status DumpOnce::Capture(const StillHeld& held) {
  written_ = true;
  laps_.End("dumped");
  SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.frozen: criu has written everything, the task is frozen">());
  if (plan_.user.as_user) SIDING_RETURN_IF_ERROR(GiveFolder(draft_->path(), geteuid(), getegid()));
  if (tracked_) {
    SIDING_RETURN_IF_ERROR(CaptureTracked(held));
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.captured: what a tracked task has written is copied, it is frozen">());
  }
  const NeedOfOurs need = FindNeedOfOurs(plan_.init);
  SIDING_RETURN_IF_ERROR(CheckNeed(need, plan_.criu.kind));
  SIDING_ASSIGN_OR_RETURN(
      shared_, SaveSharedMemory(plan_.init, plan_.account, plan_.shared_mark, draft_->path(), abandon_));
  SIDING_RETURN_IF_ERROR(
      FaultAtCriu<"agent.dump.shared: the task's shared memory is in the image, which is not sealed">());
  FileIds in_image = FilesInOwnSharedMemory(plan_.init);
  for (const SharedMemoryFile& file : shared_) in_image.insert(file.id);
  FileContents none;
  SIDING_ASSIGN_OR_RETURN(const auto files,
                          RecordOpenFiles(plan_.init, plan_.contents ? *plan_.contents : none, in_image));
  SIDING_RETURN_IF_ERROR(CheckRecreatedNames(plan_.init, plan_.account));
  metadata_ = plan_.metadata;
  metadata_[kMetadataFiles] = OpenFilesToJson(files);
  metadata_[kMetadataHeld] = HeldToJson(RecordHeld(plan_.init, in_image));
  if (!shared_.empty()) metadata_[kMetadataShared] = SharedMemoryToJson(shared_);
  if (std::string pipes = PipesToText(RecordPipes(plan_.init)); !pipes.empty())
    metadata_[kMetadataPipes] = std::move(pipes);
  if (const auto threads = RecordThreadSettings(plan_.init); !threads.empty())
    metadata_[kMetadataThreads] = ThreadSettingsToJson(threads);
  if (!need.why.empty()) metadata_[kMetadataNeedsOurs] = need.why;
  SIDING_RETURN_IF_ERROR(observer_.OnWritten(draft_->path(), held));
  laps_.End("captured");
  return absl::OkStatus();
}

// When so much of the time that is left is over.
Steady::time_point DumpOnce::PartOfWhatIsLeft(int part) const {
  const auto now = Steady::now(), limit = observer_.Limit();
  return limit == Steady::time_point::max() ? limit : now + (limit - now) / part;
}

// Half of it is for the disk.
SharingLimits DumpOnce::Limits() const {
  return {[this] { return IsCalledOff(); }, PartOfWhatIsLeft(2)};
}

absl::Status DumpOnce::Share() {
  if (draft_->base() == nullptr) return absl::OkStatus();
  if (draft_->is_near() || (tracked_ && !tracked_->LeftOut().empty())) observer_.OnSharing();
  TrackedDump::Written tracked;
  const SharingLimits limits = Limits();
  if (tracked_) {
    SIDING_ASSIGN_OR_RETURN(tracked, tracked_->Write(limits));
    if (!tracked.pagemaps.empty())
      spdlog::info(
          "image of {}: {} of its processes are tracked, {} of their memory is new; {} was copied while they "
          "ran, and for that they were stopped for {} at most",
          plan_.key.checkpoint.value(), tracked.pagemaps.size(), FormatBytes(tracked.fresh),
          FormatBytes(tracked.precopied), FormatDuration(tracked_->stopped()));
  }
  Bytes unused = tracked.unused;
  // To compare pages reads all of the base.
  if (draft_->is_near()) {
    SIDING_ASSIGN_OR_RETURN(const Bytes of_others, SharePages(*draft_, limits, tracked.pagemaps));
    unused += of_others;
  }
  if (unused > Bytes{}) metadata_[kMetadataUnused] = std::to_string(unused.value);
  return absl::OkStatus();
}

absl::Status DumpOnce::Finish(const StillHeld& held) {
  // A task that runs may end meanwhile, or be ended, and shall not wait for the disk.
  const absl::Status shared = Share();
  const auto sealed =
      shared.ok() ? draft_->Seal(std::move(metadata_), [this] { return IsCalledOff(); }) : shared;
  if (absl::IsCancelled(sealed.status())) SIDING_RETURN_IF_ERROR(observer_.WhyStopped());
  SIDING_ASSIGN_OR_RETURN(const Manifest manifest, sealed);
  SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.sealed: the image is whole, nobody has been told">());
  laps_.End("sealed");
  SIDING_RETURN_IF_ERROR(observer_.OnPrepared(manifest, held));
  laps_.End("decided");
  SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.decided: the image is to count">());
  committing_ = true;
  const auto remembered = [&]() -> absl::Status {
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.remembered: that it commits is remembered, the image does not count yet">());
    return held();
  };
  SIDING_RETURN_IF_ERROR(
      CommitPatiently(*draft_, store_, plan_.key, observer_, remembered, held, plan_.commit_patience));
  const bool waits = plan_.leaves_together && !plan_.keep_running;
  committed_ = !waits;  // till then it can be undone
  SIDING_RETURN_IF_ERROR(
      FaultAtCriu<"agent.dump.committed: the image counts, nothing has been done to the task yet">());
  observer_.OnCommitted();
  laps_.End("counted");
  if (waits) SIDING_RETURN_IF_ERROR(AwaitLeave(held));
  committed_ = true;
  if (tracked_) tracked_->Counts();
  if (waits)
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.leaving: the images of all ranks count, this one is about to end">());
  spdlog::info("image {} of rank {}: {}", plan_.key.checkpoint.value(), plan_.key.rank, laps_.ToString());
  return absl::OkStatus();
}

void DumpOnce::LetGo() {
  MutexLock lock(capturing_);
  pollfd ended{init_.get(), POLLIN, 0};
  if (poll(&ended, 1, 0) == 0) repaired_ += EndRepair(plan_.init);
  // An image that is to count has what its peers send now in none.
  if (plan_.packets != nullptr && (!committing_ || plan_.keep_running)) plan_.packets->LetGo();
  EndHold(plan_.hold);
}

absl::Status DumpOnce::Run() {
  SIDING_RETURN_IF_ERROR(Begin());
  absl::Status status;
  {
    const ProgressTeller teller(*draft_, observer_);
    stopped_ = Steady::now();
    status = criu_.Dump(ForCriu(), [this](const StillHeld& held) -> absl::Status {
      SIDING_RETURN_IF_ERROR(Capture(held));
      return plan_.finish_behind ? AwaitRunOn(held) : Finish(held);
    });
    // Without the mark of what passes by itself: it is not tried again.
    if (others_may_run_ && !status.ok()) status = absl::Status(status.code(), status.message());
    FaultHere<"agent.dump.over: criu has ended">();
    if (!committed_) committing_ = false;
    if (!status.ok() && (!committed_ || plan_.keep_running)) LetGo();
    if (status.ok() && plan_.keep_running) {
      EndHold(plan_.hold);  // criu only warns where it could not
      if (plan_.packets != nullptr) plan_.packets->LetGo();
    }
    if (status.ok() && plan_.finish_behind) {
      const auto stopped = std::chrono::duration_cast<Duration>(Steady::now() - stopped_);
      observer_.OnRunsOn(tracked_ ? std::max(stopped, tracked_->stopped()) : stopped);
      laps_.End("resumed");
      status = FaultAt<"agent.dump.behind: the task runs again, its image is not sealed">();
      if (status.ok()) status = Finish([] { return absl::OkStatus(); });
    }
  }
  return Conclude(std::move(status));
}

absl::Status DumpOnce::Conclude(absl::Status status) {
  if (committed_ && !plan_.keep_running) {
    // CRIU died between the commit and the end of the processes. The image counts: what is left ends here.
    if (!status.ok()) syscall(SYS_pidfd_send_signal, init_.get(), SIGKILL, nullptr, 0);
    pollfd ended{init_.get(), POLLIN, 0};
    if (!shared_.empty() && poll(&ended, 1, static_cast<int>(kEndPatience.count() / 1000)) == 1)
      RemoveSharedMemory(shared_, plan_.account, plan_.shared_mark);
    return absl::OkStatus();
  }
  if (committed_) return absl::OkStatus();
  // CRIU says that a disk is full, but not which; of other errors it says less.
  if (!status.ok() && ((!written_ && absl::IsResourceExhausted(status)) || IsRefusing(draft_->path())))
    status = TierProblem(Annotate(status, "writing to " + draft_->path()));
  status = AfterRepair(status, repaired_);
  const absl::Status untraced = AwaitCriuGone(plan_.init, plan_.work_folder, kUntracedPatience);
  return untraced.ok() ? status
                       : Reworded(status, absl::StrCat(std::string(untraced.message()), ": ",
                                                       std::string(status.message())));
}

}  // namespace

absl::Status RunDump(Criu& criu, ImageStore& store, const DumpPlan& plan, DumpObserver& observer,
                     const std::atomic<bool>& abandon) {
  const auto once = [&] { return DumpOnce(criu, store, plan, observer, abandon).Run(); };
  absl::Status status = once();
  for (const Duration pause : kPauses) {
    if (!PassesByItself(status) || PollUntil([&] { return abandon.load(); }, pause)) return status;
    status = once();
  }
  if (!PassesByItself(status)) return status;
  return Reworded(
      status, absl::StrCat(std::string(status.message()), ", at each of ", std::size(kPauses) + 1, " tries"));
}

}  // namespace siding
