// The dump of one task, in two phases: see docs/design/README.md, "A checkpoint in two phases".
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "agent/checkpoint/file_contents.h"
#include "agent/criu/criu.h"
#include "agent/memory/memory_tracking.h"
#include "agent/os/account.h"
#include "common/units.h"
#include "store/store.h"

namespace siding {

// Keys of the image's metadata.
inline constexpr char kMetadataHeld[] = "held";                // see open_files.h
inline constexpr char kMetadataFiles[] = "files";              // see open_files.h
inline constexpr char kMetadataUser[] = "uid";                 // whose processes they were
inline constexpr char kMetadataCommand[] = "command";          // JobSpec::command_checksum; absent: not said
inline constexpr char kMetadataIncarnation[] = "incarnation";  // of the task
inline constexpr char kMetadataPipes[] = "pipes";              // see stdio.h; absent: the task has none
inline constexpr char kMetadataShared[] = "shared_memory";  // see shared_memory.h; absent: the task has none
inline constexpr char kMetadataThreads[] = "threads";       // see thread_settings.h; absent: none has any
inline constexpr char kMetadataNode[] = "node";             // that made it
inline constexpr char kMetadataCluster[] = "cluster";       // ProgramNames::cluster; absent: empty
// What only a CriuKind::kOurs restores of it, as FindNeedOfOurs() says it; absent: nothing, or not said.
inline constexpr char kMetadataNeedsOurs[] = "needs_ours";
inline constexpr char kMetadataGpu[] = "gpu";  // GpuRecord, see agent/task/task_record.proto

// Keeps packets from a task that has a network of its own. Called from the dumping thread, and when CRIU has
// ended from another.
class PacketHold {
 public:
  virtual ~PacketHold() = default;
  // All of its own are stopped: waits a moment for what has been sent to arrive. Others may run.
  virtual void Drain() = 0;
  // All processes are stopped, those of ranks that are dumped with it, too, and none of their connections has
  // been touched. What has been sent arrives first; what cannot, and would be in no image, is an error.
  virtual absl::Status Hold() = 0;
  // CRIU has let go of them. Also if they were not held.
  virtual void LetGo() = 0;
};

struct DumpPlan {
  ImageKey key;
  pid_t init = 0;
  DumpingCriu criu;
  std::string work_folder;
  // That CRIU joins; may be empty. It must not be ended together with the agent: CRIU has to undo what it
  // has begun, otherwise processes may die.
  std::string cgroup;
  std::string hold;               // see CriuDump
  PacketHold* packets = nullptr;  // it has a network of its own; null: that of the node
  bool keep_running = false;
  // Needs keep_running: the processes run again as soon as all of the image is written, and it is synced
  // and committed beside them. A rank of several has to wait for the others: see `together`.
  bool finish_behind = false;
  // With finish_behind: others are dumped at the same time, and it stops at barriers until all have come to
  // them. Once it has come to the last one it is not tried again: others may run on, and another image of it
  // would be of a later moment than theirs.
  bool together = false;
  // With packets: it stops at a barrier before these are held, as others may be sending still.
  bool holds_together = false;
  // Without keep_running: once its image counts it stops at a barrier until those of the others do. Until it
  // may pass that, it can be undone still.
  bool leaves_together = false;
  // With finish_behind: an image of the same task on that tier. Pages that it has may be shared. Only
  // behind: how long it takes depends on what has changed, and no deadline can count on that.
  std::optional<ImageKey> base;
  // With finish_behind, and CriuKind::kOurs: what earlier dumps of the task know of the pages that it writes,
  // so that it is stopped only until those are copied. Null: it is not tracked. The image is not in its
  // folder while the processes are frozen.
  MemoryTracking* tracking = nullptr;
  // With tracking, on a disk of this machine: for what is not in the image yet, if that is in another tier
  // that is not. Null: it is in the image's.
  ImageStore* near_store = nullptr;
  Duration commit_patience{0};  // see CommitPatience() in dump_steps.h
  CriuUser user;
  Account account;                   // whose processes they are
  std::string shared_mark;           // see shared_memory.h
  FileContents* contents = nullptr;  // what earlier dumps know; null: nothing
  std::map<std::string, std::string> metadata;
};

// See DumpPlan::together, holds_together and leaves_together.
enum class DumpBarrier { kStop, kHold, kRunOn, kLeave };

// What the dump reports, and asks, while it runs. Called from the dumping thread, but OnProgress from
// another.
class DumpObserver {
 public:
  virtual ~DumpObserver() = default;
  virtual void OnProgress(Bytes done) = 0;
  // Why the dump is to be undone; OK: it is not. Asked from several threads while the image is sealed.
  virtual absl::Status WhyStopped() const = 0;
  // By when the image has to be whole.
  virtual std::chrono::steady_clock::time_point Limit() const {
    return std::chrono::steady_clock::time_point::max();
  }
  // The image is compared with its base, so how long it takes says nothing of others. Before OnPrepared().
  virtual void OnSharing() {}
  // The processes are frozen, and all of the image is in `folder`, not encrypted, unless they are tracked.
  // Not OK: the dump fails with that. They are frozen for as long as `held` is OK.
  virtual absl::Status OnWritten(const std::string& /*folder*/, const StillHeld& /*held*/) {
    return absl::OkStatus();
  }
  // It has come to this barrier. kStop: the processes run, and are about to be stopped;
  // kHold: they are stopped; kRunOn: they are, and nothing more is needed of them; kLeave: they are, and the
  // image counts. An error: the others are not to know.
  virtual absl::Status OnBarrier(DumpBarrier /*barrier*/) { return absl::OkStatus(); }
  // Blocks until all ranks have come to it; false: they have not in that time. An error: they will not.
  // `held` is not OK once CRIU has ended.
  virtual absl::StatusOr<bool> MayPass(DumpBarrier /*barrier*/, Duration /*most*/,
                                       const StillHeld& /*held*/) {
    return true;
  }
  // With finish_behind: the processes run again, after they were stopped for so long at most. What follows is
  // done beside them, and is held by nobody.
  virtual void OnRunsOn(Duration stopped) = 0;
  // The processes are frozen or, with finish_behind, run; the image is whole. Blocks until it is decided; OK
  // means commit, anything else is why not. If `held` fails they run again, and the image must not count any
  // more.
  virtual absl::Status OnPrepared(const Manifest& manifest, const StillHeld& held) = 0;
  // Right before the image becomes visible: must be remembered durably. Called again if the one or the other
  // fails; kAborted: that makes no sense any more.
  virtual absl::Status OnCommitting() = 0;
  // The image is visible; the processes are about to end (or to continue). With leaves_together the dump may
  // be undone even now.
  virtual void OnCommitted() = 0;
};

// Blocks until the dump is over. On success the image is visible and the processes are gone, or with
// keep_running continue. On failure they run on as if nothing had happened, and no draft is left. What fails
// of something that passes by itself, such as a connection that waits to be accepted, is tried again a few
// times within a second. `abandon`, set from another thread, stops CRIU: see CriuDump.
absl::Status RunDump(Criu& criu, ImageStore& store, const DumpPlan& plan, DumpObserver& observer,
                     const std::atomic<bool>& abandon);

}  // namespace siding
