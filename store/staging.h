// The folder staging/ of a tier: drafts that are being written, and images that are being deleted.
//
// Each name ends in ".<host>-<16 hex digits>". A draft X has a lock file X.lock beside it, held by flock for
// as long as its writer lives: the sweep removes only drafts whose lock is free.
// The lock file is made before the folder and removed after it, so a folder without one has no owner.
//
// Only this host's entries are swept: on some shared file systems (Lustre with localflock, NFS with
// local_lock) a lock is not seen from another machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "store/layout.h"

namespace siding::store {

// A locked folder in staging/. Destroying it removes the folder, unless it was moved away.
class StagingFolder {
 public:
  // `stem`: what its name begins with.
  static absl::StatusOr<std::unique_ptr<StagingFolder>> Make(const Layout& layout, const std::string& stem);
  static absl::StatusOr<std::unique_ptr<StagingFolder>> Make(const Layout& layout, const ImageKey& key);
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const std::string& path() const { return path_; }
  // The folder has been moved away, and is not removed.
  void MovedAway() { moved_away_ = true; }

 private:
  StagingFolder(Disk& disk, std::string path, UniqueFd lock)
      : disk_(disk), path_(std::move(path)), lock_(std::move(lock)) {}

  Disk& disk_;
  const std::string path_;
  UniqueFd lock_;
  bool moved_away_ = false;
};

// A new path in staging/ to rename something to that is to be removed. It has no lock: if the remover dies,
// the next sweep removes the rest.
std::string TrashPath(const Layout& layout);

// A new path in damaged/ for that image.
std::string DamagedPath(const Layout& layout, const ImageKey& key);

// Removes what dead writers and removers of this host have left.
absl::Status SweepStaging(const Layout& layout);

}  // namespace siding::store
