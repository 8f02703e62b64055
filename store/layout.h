// Paths below the root of a directory tier, and the text of an I/O error of the tier.
//
// Everything here is a pure function of its arguments, except FreeSpace and IoError, which ask the disk.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"
#include "store/disk.h"
#include "store/secret_key.h"
#include "store/store.h"

namespace siding::store {

inline constexpr char kManifestName[] = "manifest.json";

// Paths of one tier, and the disk that they are on. A value; cheap enough to copy.
struct Layout {
  std::string root;
  Disk* disk = &RealDisk();

  std::string Images() const { return root + "/images"; }
  std::string Staging() const { return root + "/staging"; }
  std::string Damaged() const { return root + "/damaged"; }
  std::string CheckpointFolder(const CheckpointId& id) const { return Images() + "/" + id.value(); }
  std::string ImageFolder(const ImageKey& key) const {
    return CheckpointFolder(key.checkpoint) + "/" + std::to_string(key.rank);
  }
};

// How a tier encrypts.
struct Encryption {
  std::shared_ptr<const KeyRing> keys;  // null: it does not
  Layout plain;                         // where drafts lie until they are sealed
};

// "42.3 rank 0", for messages.
std::string Describe(const ImageKey& key);

// What an encrypted file is bound to: "42.3/0/core-1.img".
std::string BoundName(const ImageKey& key, const std::string& file);

// kInvalidArgument unless the key can be a folder's name: a checkpoint of letters, digits, '.', '-' and '_'
// that does not start with a dot, and a rank that is not negative.
absl::Status CheckKey(const ImageKey& key);

// The key of the folder images/<checkpoint>/<rank>; nullopt if these two names are not the store's.
std::optional<ImageKey> KeyOfFolders(const std::string& checkpoint, const std::string& rank);

// What an unprivileged writer may still use.
absl::StatusOr<Bytes> FreeSpace(const Layout& layout);

// An error of the tier, from errno: a full disk or quota is kResourceExhausted and says how much room is
// left, a target that exists is kAlreadyExists, everything else kInternal.
absl::Status IoError(const Layout& layout, int error, const std::string& what);
// The same for an error that store/disk.h has reported.
absl::Status IoError(const Layout& layout, const absl::Status& status);

}  // namespace siding::store
