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
#include <memory>
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
#include "agent/os/processes.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr Duration kEndPatience = std::chrono::seconds(10);
constexpr Duration kUntracedPatience = std::chrono::seconds(10);
// Before the next try, where what stood in the way passes by itself: a server that is busy accepts what waits
// for it as soon as it runs again.
constexpr Duration kPauses[] = {std::chrono::milliseconds(100), std::chrono::milliseconds(200),
                                std::chrono::milliseconds(500)};

absl::Status GiveFolder(const std::string& folder, uid_t uid, gid_t gid) {
  if (lchown(folder.c_str(), uid, gid) != 0) return ErrnoError(errno, "chown " + folder);
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
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

absl::Status DumpOnce(Criu& criu, ImageStore& store, const DumpPlan& plan, DumpObserver& observer,
                      const std::atomic<bool>& abandon) {
  if (std::string why = WhyNotDumpable(plan.init, plan.criu); !why.empty())
    return absl::FailedPreconditionError(why);
  // While it lives: at the end its number may be another process's.
  absl::StatusOr<UniqueFd> opened = OpenPidfd(plan.init);
  if (absl::IsNotFound(opened.status())) return absl::AbortedError("the task has ended");
  SIDING_ASSIGN_OR_RETURN(const UniqueFd init, std::move(opened));
  SIDING_ASSIGN_OR_RETURN(const std::unique_ptr<ImageDraft> draft, store.Begin(plan.key));
  SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.draft: the folder of a new image is made">());
  // CRIU as the job's user must be able to write there, but afterwards only root may.
  if (plan.user.as_user) SIDING_RETURN_IF_ERROR(GiveFolder(draft->path(), plan.user.uid, plan.user.gid));

  CriuDump dump;
  dump.pid = plan.init;
  dump.image_folder = draft->path();
  dump.work_folder = plan.work_folder;
  dump.cgroup = plan.cgroup;
  dump.hold = plan.hold;
  dump.keep_running = plan.keep_running;
  dump.skip_network_lock = ConnectionsStayInside(plan.init);
  dump.user = plan.user;
  dump.abandon = &abandon;

  std::atomic<int> repaired{0};
  const auto let_go = [&] {
    pollfd ended{init.get(), POLLIN, 0};
    if (poll(&ended, 1, 0) == 0) repaired += EndRepair(plan.init);
    EndHold(plan.hold);
  };
  // Where they are not held the processes run the moment that CRIU is ended, so nothing else is waited for.
  // Where they are, those that may be about to end do not run on.
  std::atomic<bool> committing{false};
  dump.on_end = [&] {
    if (!committing || plan.keep_running || plan.hold.empty()) let_go();
  };
  // What comes later comes from outside, to a job that is away, as after the dump. They may read it at the
  // next try.
  dump.on_stopped = [&] {
    const std::string queued = FindQueued(plan.init);
    return queued.empty() ? absl::OkStatus() : PassingError(queued);
  };

  bool written = false, committed = false;
  std::vector<SharedMemoryFile> shared;
  const auto post_dump = [&](const StillHeld& held) -> absl::Status {
    written = true;
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.frozen: criu has written everything, the task is frozen">());
    if (plan.user.as_user) SIDING_RETURN_IF_ERROR(GiveFolder(draft->path(), geteuid(), getegid()));
    const NeedOfOurs need = FindNeedOfOurs(plan.init);
    SIDING_RETURN_IF_ERROR(CheckNeed(need, plan.criu.kind));
    SIDING_ASSIGN_OR_RETURN(
        shared, SaveSharedMemory(plan.init, plan.account, plan.shared_mark, draft->path(), abandon));
    SIDING_RETURN_IF_ERROR(
        FaultAtCriu<"agent.dump.shared: the task's shared memory is in the image, which is not sealed">());
    FileIds in_image;
    for (const SharedMemoryFile& file : shared) in_image.insert(file.id);
    FileContents none;
    SIDING_ASSIGN_OR_RETURN(const auto files,
                            RecordOpenFiles(plan.init, plan.contents ? *plan.contents : none, in_image));
    SIDING_RETURN_IF_ERROR(CheckRecreatedNames(plan.init, plan.account));
    auto metadata = plan.metadata;
    metadata[kMetadataFiles] = OpenFilesToJson(files);
    metadata[kMetadataHeld] = HeldToJson(RecordHeld(plan.init, in_image));
    if (!shared.empty()) metadata[kMetadataShared] = SharedMemoryToJson(shared);
    if (std::string pipes = PipesToText(RecordPipes(plan.init)); !pipes.empty())
      metadata[kMetadataPipes] = std::move(pipes);
    if (const auto threads = RecordThreadSettings(plan.init); !threads.empty())
      metadata[kMetadataThreads] = ThreadSettingsToJson(threads);
    if (!need.why.empty()) metadata[kMetadataNeedsOurs] = need.why;
    SIDING_RETURN_IF_ERROR(observer.OnWritten(draft->path(), held));
    SIDING_ASSIGN_OR_RETURN(const Manifest manifest, draft->Seal(std::move(metadata)));
    SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.sealed: the image is whole, nobody has been told">());
    SIDING_RETURN_IF_ERROR(observer.OnPrepared(manifest, held));
    SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.decided: the image is to count">());
    committing = true;
    const auto remembered = [&]() -> absl::Status {
      SIDING_RETURN_IF_ERROR(
          FaultAtCriu<
              "agent.dump.remembered: that it commits is remembered, the image does not count yet">());
      return held();
    };
    SIDING_RETURN_IF_ERROR(
        CommitPatiently(*draft, store, plan.key, observer, remembered, held, plan.commit_patience));
    committed = true;
    SIDING_RETURN_IF_ERROR(FaultAtCriu<"agent.dump.committed: the image counts, the task is still frozen">());
    observer.OnCommitted();
    return absl::OkStatus();
  };
  absl::Status status;
  {
    const ProgressTeller teller(*draft, observer);
    status = criu.Dump(dump, post_dump);
  }
  FaultHere<"agent.dump.over: criu has ended">();
  if (committed && !plan.keep_running) {
    // CRIU died between the commit and the end of the processes. The image counts: what is left ends here.
    if (!status.ok()) syscall(SYS_pidfd_send_signal, init.get(), SIGKILL, nullptr, 0);
    pollfd ended{init.get(), POLLIN, 0};
    if (!shared.empty() && poll(&ended, 1, static_cast<int>(kEndPatience.count() / 1000)) == 1)
      RemoveSharedMemory(shared, plan.account, plan.shared_mark);
    return absl::OkStatus();
  }
  if (!status.ok()) let_go();
  if (committed) return absl::OkStatus();
  // CRIU says that a disk is full, but not which; of other errors it says less.
  if (!status.ok() && ((!written && absl::IsResourceExhausted(status)) || IsRefusing(draft->path())))
    status = TierProblem(Annotate(status, "writing to " + draft->path()));
  status = AfterRepair(status, repaired);
  const absl::Status untraced = AwaitCriuGone(plan.init, plan.work_folder, kUntracedPatience);
  return untraced.ok() ? status
                       : Reworded(status, absl::StrCat(std::string(untraced.message()), ": ",
                                                       std::string(status.message())));
}

}  // namespace

absl::Status RunDump(Criu& criu, ImageStore& store, const DumpPlan& plan, DumpObserver& observer,
                     const std::atomic<bool>& abandon) {
  absl::Status status = DumpOnce(criu, store, plan, observer, abandon);
  for (const Duration pause : kPauses) {
    if (!PassesByItself(status) || PollUntil([&] { return abandon.load(); }, pause)) return status;
    status = DumpOnce(criu, store, plan, observer, abandon);
  }
  if (!PassesByItself(status)) return status;
  return Reworded(
      status, absl::StrCat(std::string(status.message()), ", at each of ", std::size(kPauses) + 1, " tries"));
}

}  // namespace siding
