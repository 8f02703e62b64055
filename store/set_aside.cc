#include "store/set_aside.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/status.h"
#include "store/commit.h"

namespace siding::store {
namespace {

// So often others may put another image into the place in the same moment. A disk that cannot be read looks
// like that each time.
constexpr int kMostExchanges = 10;

absl::Status NoLongerThere(const ImageKey& key) {
  return absl::AbortedError(
      absl::StrCat("image ", Describe(key), " was replaced or deleted after it was found to be damaged"));
}

bool CannotExchange(int error) { return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP; }

// Undoes MoveAside(). If another image has come into the place, it is newer, and stays.
void PutBack(const Layout& layout, const ImageKey& key, const std::string& aside) {
  Disk& disk = *layout.disk;
  const std::string parent = layout.CheckpointFolder(key.checkpoint);
  disk.MakeFolder(parent);  // it may have been removed as an empty one
  if (disk.Rename(aside, layout.ImageFolder(key)) != 0) {
    disk.RemoveFolder(parent);  // only if it is empty
    return;
  }
  (void)SyncFolder(disk, layout.Images());
  (void)SyncFolder(disk, parent);
  (void)SyncFolder(disk, layout.Damaged());
}

// As SetAside(), but not durably.
absl::Status MoveAside(const Layout& layout, const ImageKey& key, const UniqueFd& damaged,
                       const std::string& aside) {
  const std::string place = layout.ImageFolder(key);
  if (!IsNamed(damaged.get(), place)) {
    if (access(place.c_str(), F_OK) == 0) return NoLongerThere(key);
    return absl::NotFoundError("no image " + Describe(key) + " in " + layout.root);
  }
  if (layout.disk->Rename(place, aside) != 0) {
    if (errno == ENOENT) return absl::NotFoundError("no image " + Describe(key) + " in " + layout.root);
    return IoError(layout, errno, "rename " + place + " to " + aside);
  }
  if (IsNamed(damaged.get(), aside)) return absl::OkStatus();
  // Another one has come into the place since it was looked at.
  PutBack(layout, key, aside);
  return NoLongerThere(key);
}

// What lies in the draft's place is another's, or all that is left of an image, and cannot be put back.
void Keep(const Layout& layout, const ImageKey& key, StagingFolder& draft) {
  layout.disk->Rename(draft.path(), DamagedPath(layout, key));
  draft.MovedAway();
}

// What was exchanged is durable, before the first file of the draft goes: after a power cut that must not be
// the one in the place.
void SyncBeforeItGoes(const Layout& layout, const ImageKey& key, StagingFolder& draft) {
  for (const std::string& folder : {layout.CheckpointFolder(key.checkpoint), layout.Staging()})
    if (!SyncFolder(*layout.disk, folder).ok()) draft.MovedAway();
}

// Exchanges the draft with the image in the place, if that is `expected`; else kAborted, and what is there
// stays there. kUnimplemented: the file system cannot. After another error both are where they were.
absl::Status Exchange(const Layout& layout, const ImageKey& key, int expected, StagingFolder& draft) {
  const std::string place = layout.ImageFolder(key);
  UniqueFd put(HoldFolder(draft.path()));
  if (!put.valid()) return IoError(layout, errno, "open " + draft.path());
  if (!IsNamed(expected, place)) return NoLongerThere(key);
  UniqueFd last;
  for (int i = 0; i < kMostExchanges; ++i) {
    if (layout.disk->Exchange(draft.path(), place) != 0) {
      const int error = errno;
      if (error == ENOENT) return NoLongerThere(key);  // what came out of there was deleted with it
      if (i > 0) Keep(layout, key, draft);
      if (CannotExchange(error)) return absl::UnimplementedError("exchange " + place);
      return IoError(layout, error, "exchange " + draft.path() + " with " + place);
    }
    if (IsNamed(i == 0 ? expected : last.get(), draft.path())) {
      if (i == 0) return absl::OkStatus();
      SyncBeforeItGoes(layout, key, draft);
      return NoLongerThere(key);
    }
    // Another one has come into the place since it was looked at. It is put back, and what was put there
    // before must come out; if that does not, what does is newer still.
    last = std::move(put);
    put = UniqueFd(HoldFolder(draft.path()));
  }
  Keep(layout, key, draft);
  return NoLongerThere(key);
}

absl::Status ReplaceByRenames(const Layout& layout, const ImageKey& key, const UniqueFd& damaged,
                              const UniqueFd& good, StagingFolder& draft) {
  const std::string aside = DamagedPath(layout, key);
  const absl::Status moved = MoveAside(layout, key, damaged, aside);
  if (absl::IsNotFound(moved)) return NoLongerThere(key);
  SIDING_RETURN_IF_ERROR(moved);
  const absl::Status committed = CommitImage(layout, key, draft);
  if (absl::IsAlreadyExists(committed)) return NoLongerThere(key);
  if (committed.ok()) {
    (void)SyncFolder(*layout.disk, layout.Damaged());
    return committed;
  }
  if (IsNamed(good.get(), layout.ImageFolder(key))) return committed;
  if (access(draft.path().c_str(), F_OK) != 0 && errno == ENOENT)
    return NoLongerThere(key);  // it was deleted as soon as it was there
  PutBack(layout, key, aside);
  return committed;
}

// Of the exchange. kAborted: the good one is not there any more, so nobody wants the damaged one.
absl::Status Undo(const Layout& layout, const ImageKey& key, const UniqueFd& good, StagingFolder& draft) {
  const absl::Status undone = Exchange(layout, key, good.get(), draft);
  if (absl::IsAborted(undone)) {
    // A disk that cannot be read looks like a deletion. Then the damaged one stays until the next sweep.
    if (access(layout.ImageFolder(key).c_str(), F_OK) == 0 || errno != ENOENT) draft.MovedAway();
    return undone;
  }
  if (undone.ok())
    SyncBeforeItGoes(layout, key, draft);
  else
    Keep(layout, key, draft);
  return absl::OkStatus();
}

// What follows the exchange: `draft` has the damaged one now.
absl::Status Settle(const Layout& layout, const ImageKey& key, const StagingFolder& draft) {
  SIDING_RETURN_IF_ERROR(FaultAt<"store.moved: an image is in its place, which may not be durable">());
  SIDING_RETURN_IF_ERROR(SyncFolder(*layout.disk, layout.CheckpointFolder(key.checkpoint)));
  SIDING_RETURN_IF_ERROR(SyncFolder(*layout.disk, layout.Staging()));
  const std::string aside = DamagedPath(layout, key);
  if (layout.disk->Rename(draft.path(), aside) != 0) return ErrnoError(errno, "rename to " + aside);
  return absl::OkStatus();
}

}  // namespace

absl::Status SetAside(const Layout& layout, const ImageKey& key, const UniqueFd& damaged) {
  Disk& disk = *layout.disk;
  SIDING_RETURN_IF_ERROR(IoError(layout, MakeFolders(disk, layout.Damaged())));
  SIDING_RETURN_IF_ERROR(MoveAside(layout, key, damaged, DamagedPath(layout, key)));
  const std::string parent = layout.CheckpointFolder(key.checkpoint);
  // After a power cut it must not be back among those that count.
  SIDING_RETURN_IF_ERROR(IoError(layout, SyncFolder(disk, layout.Damaged())));
  SIDING_RETURN_IF_ERROR(IoError(layout, SyncFolder(disk, parent)));
  disk.RemoveFolder(parent);  // stays as long as other ranks are in it
  return absl::OkStatus();
}

absl::Status ReplaceImage(const Layout& layout, const ImageKey& key, const UniqueFd& damaged,
                          StagingFolder& draft) {
  Disk& disk = *layout.disk;
  SIDING_RETURN_IF_ERROR(IoError(layout, MakeFolders(disk, layout.Damaged())));
  const UniqueFd good(HoldFolder(draft.path()));
  if (!good.valid()) return IoError(layout, errno, "open " + draft.path());
  // Of several at once each would take what another puts back for a newer image. Where folders cannot be
  // locked (NFS) none are exchanged either.
  const UniqueFd lock(open(layout.Damaged().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)flock(lock.get(), LOCK_EX);
  const absl::Status exchanged = Exchange(layout, key, damaged.get(), draft);
  if (absl::IsUnimplemented(exchanged)) return ReplaceByRenames(layout, key, damaged, good, draft);
  SIDING_RETURN_IF_ERROR(exchanged);
  if (const absl::Status settled = Settle(layout, key, draft); !settled.ok()) {
    // Not durable, so it must not be visible.
    SIDING_RETURN_IF_ERROR(Undo(layout, key, good, draft));
    return IoError(layout, settled);
  }
  draft.MovedAway();
  // The good one is in its place, durably. Of the damaged one no more is lost than where it lies.
  (void)SyncFolder(disk, layout.Damaged());
  (void)SyncFolder(disk, layout.Staging());
  FaultHere<"store.committed: an image is in its place, durably">();
  return absl::OkStatus();
}

}  // namespace siding::store
