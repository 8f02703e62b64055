#include "store/commit.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "common/fault.h"
#include "common/status.h"

namespace siding::store {
namespace {

absl::Status MoveIntoPlace(const Layout& layout, const ImageKey& key, const std::string& draft) {
  Disk& disk = *layout.disk;
  const std::string parent = layout.CheckpointFolder(key.checkpoint);
  const std::string target = layout.ImageFolder(key);
  for (;;) {
    if (disk.MakeFolder(parent) != 0 && errno != EEXIST) return IoError(layout, errno, "mkdir " + parent);
    if (disk.Rename(draft, target) == 0) return absl::OkStatus();
    const int error = errno;
    if (error == ENOENT && access(draft.c_str(), F_OK) == 0) continue;  // Delete() has just removed `parent`
    disk.RemoveFolder(parent);                                          // only if it is empty
    if (error == EEXIST || error == ENOTEMPTY) {
      return absl::AlreadyExistsError("image " + Describe(key) + " exists already in " + layout.root);
    }
    return IoError(layout, error, "rename " + draft + " to " + target);
  }
}

}  // namespace

absl::Status CommitImage(const Layout& layout, const ImageKey& key, StagingFolder& draft) {
  SIDING_RETURN_IF_ERROR(FaultAt<"store.commit: a draft is about to be moved into its place">());
  SIDING_RETURN_IF_ERROR(MoveIntoPlace(layout, key, draft.path()));
  Disk& disk = *layout.disk;
  const std::string parent = layout.CheckpointFolder(key.checkpoint);
  const absl::Status moved = FaultAt<"store.moved: an image is in its place, which may not be durable">();
  for (const std::string& folder : {parent, layout.Images(), layout.Staging()}) {
    const absl::Status synced = moved.ok() ? SyncFolder(disk, folder) : moved;
    if (synced.ok()) continue;
    // Not durable, so it must not be visible.
    if (disk.Rename(layout.ImageFolder(key), draft.path()) == 0) disk.RemoveFolder(parent);
    return IoError(layout, synced);
  }
  draft.MovedAway();
  FaultHere<"store.committed: an image is in its place, durably">();
  return absl::OkStatus();
}

}  // namespace siding::store
