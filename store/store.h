// The checkpoint store: one directory tier. Two of them make the local and the shared tier of a node.
//
// On disk, below the root:
//   images/<checkpoint>/<rank>/...            a whole image; manifest.json is written last
//   staging/<checkpoint>.<rank>.<unique>/...  a draft; it is removed if its writer has died
//   damaged/<checkpoint>.<rank>.<unique>/...  a quarantined image, for an administrator to examine
//   restore/<name>/...                        see ImageStore::RestoreFolder()
//   tier/id                                   which tier this is
// where <checkpoint> is a CheckpointId ("42.3").
//
// An image is visible only when whole: it is written as a draft, hashed, synced, described by its manifest,
// and then renamed. Every file has a checksum, which Verify() compares before a restore may use the image.
// See docs/design/store-format.md for the manifest.
//
// Thread-safe. Errors: kResourceExhausted (disk full), kNotFound, kDataLoss (an image that is not what its
// manifest says; the message names the file), kAlreadyExists, kUnavailable (the tier is away, which says
// nothing about what is in it), kInternal (other I/O).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/ids.h"
#include "common/units.h"

namespace siding {

// Marks an error of a tier itself, such as that it is full, away or read-only: nothing is said of what was to
// be written. Others keep the mark as long as they keep the payload. OK stays OK.
absl::Status TierProblem(absl::Status status);
bool IsTierProblem(const absl::Status& status);

// Names one image: one rank of one checkpoint.
struct ImageKey {
  CheckpointId checkpoint;
  int rank = 0;
  auto operator<=>(const ImageKey&) const = default;  // NOLINT(modernize-use-nullptr): there is none
};

struct ImageFileEntry {
  std::string name;
  Bytes size;
  std::string checksum;  // "xxh3:<32 hex digits>"
  bool shared = false;   // it is the very file of an earlier image
};

struct Manifest {
  ImageKey key;
  std::string encryption_key;  // the name of the key that the files are encrypted with; empty: they are not
  Time created;
  std::vector<ImageFileEntry> files;            // sorted by name
  std::map<std::string, std::string> metadata;  // the agent's: what a restore needs to know beside the image
  // Of its text: BLAKE2b-256, 64 hex digits. Empty until it has been written or read.
  std::string digest;
  const ImageFileEntry* Find(const std::string& name) const;  // null: it has no file of that name
  Bytes TotalSize() const;
  Bytes NewSize() const;  // of it: of the files that are not shared
};

// An image may share files with an earlier one of its tier: a file is then the very same in both, by a hard
// link, and lives as long as one of them. Which bytes of a file an image uses is its maker's; see
// store/parents.h.
//
// An image being written. Destroying an uncommitted draft removes it. Not thread-safe, but `BytesSoFar`
// may be called from another thread.
class ImageDraft {
 public:
  virtual ~ImageDraft() = default;
  // Put the files here. Files that grow are hashed and sent to the disk while they grow, so that Seal() has
  // little left to do.
  virtual const std::string& path() const = 0;
  virtual Bytes BytesSoFar() const = 0;
  // The image whose files may be shared; null: none was given, or this tier cannot.
  virtual const Manifest* base() const = 0;
  // Its files are on this machine: to read them again costs no more than to write as much. Else each byte may
  // go over a network.
  virtual bool is_near() const = 0;
  // Makes a file of base() one of this draft as well, under that name. It is not hashed again: who shares a
  // file says that its bytes are still those of its checksum, and so has read it. An error leaves nothing.
  virtual absl::Status Share(const ImageFileEntry& file, const std::string& name) = 0;
  // Of a file that is shared. kAlreadyExists: another file of the draft has that name.
  virtual absl::Status RenameShared(const std::string& from, const std::string& to) = 0;
  // No more writes: checksums are completed, everything is synced, the manifest is written. Still invisible.
  // `stop` is asked all the time, from several threads: true ends it soon, with kCancelled.
  virtual absl::StatusOr<Manifest> Seal(std::map<std::string, std::string> metadata,
                                        const std::function<bool()>& stop) = 0;
  absl::StatusOr<Manifest> Seal(std::map<std::string, std::string> metadata) {
    return Seal(std::move(metadata), [] { return false; });
  }
  // Makes the sealed image visible, durably. A second image under the same key is kAlreadyExists.
  virtual absl::Status Commit() = 0;
};

struct VerifyOptions {
  // Gets the bytes done so far; false ends it, with kCancelled. May be empty. Called from one thread at a
  // time.
  std::function<bool(Bytes)> progress;
  // Reads from the disk, not from the page cache, and leaves the cache as it was.
  bool from_disk = false;
  // What the manifest's digest must be; empty: any. Else the image has been replaced, which is kDataLoss.
  std::string digest;
};

struct CopyOptions {
  std::string digest;  // as of VerifyOptions
  // Images of the tier that is copied to: of a file that one of them has as well, the first of these is
  // linked.
  std::vector<const Manifest*> bases;
  // Such files are read and compared with their checksums before. So they are anyway where that costs no more
  // than to copy them (ImageDraft::is_near()).
  bool reads_bases = false;
  // Gets what has been written so far, and all that is to be (0 and 0: what is there already is being read);
  // false ends it, with kCancelled. May be empty. Called from one thread at a time; it may block.
  std::function<bool(Bytes, Bytes)> progress;
  // A damaged image is replaced, but none made that is not there: kAborted.
  bool only_replaces = false;
};

struct Copied {
  enum What { kNew, kReplaced, kWasGood };
  What what = kNew;
  Bytes written;  // the rest is linked
};

class ImageStore {
 public:
  virtual ~ImageStore() = default;
  // With a `base`, which may be null, files are hashed and sent to the disk only by Seal(): most of them are
  // to be replaced by files of that image.
  virtual absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const ImageKey& key, const Manifest* base) = 0;
  absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const ImageKey& key) { return Begin(key, nullptr); }
  virtual absl::StatusOr<Manifest> Read(const ImageKey& key) const = 0;
  // Reads everything back and compares.
  virtual absl::StatusOr<Manifest> Verify(const ImageKey& key, const VerifyOptions& options = {}) const = 0;
  // Makes the image of another tier one of this, with the same manifest, digest included. What is written is
  // compared with its checksums: kDataLoss if the other tier's is damaged. If it is here already, that is
  // read back: OK if it is good, else the image is copied, and when the copy is whole it takes the place of
  // the damaged one, which is set aside; after an error that is where it was. kAborted if it has been
  // replaced or deleted by then: what is there stays, and what is not there does not come back.
  virtual absl::StatusOr<Copied> CopyFrom(const ImageStore& source, const ImageKey& key,
                                          const CopyOptions& options) = 0;
  // The folder of a visible image.
  virtual absl::StatusOr<std::string> Path(const ImageKey& key) const = 0;
  // The folder of its files as they were written: that of Path(), or if they are encrypted `folder`, which is
  // made (and emptied, if it was there) for the caller to remove. To be verified first. kFailedPrecondition
  // if the key is not there. `stop` is asked all the time, from several threads: true ends it soon, with
  // kCancelled. An error leaves nothing.
  virtual absl::StatusOr<std::string> Decrypt(const ImageKey& key, const std::string& folder,
                                              const std::function<bool()>& stop) const = 0;
  absl::StatusOr<std::string> Decrypt(const ImageKey& key, const std::string& folder) const {
    return Decrypt(key, folder, [] { return false; });
  }
  // Where a whole image can be made of one that shares pages with others, while it is restored: beside the
  // images, since there is room for such files. The caller makes and removes it.
  virtual std::string RestoreFolder(const std::string& name) const = 0;
  // Its files are on a disk of this machine, and not in memory, so that much may be put there for a while.
  virtual bool IsOnDisk() const = 0;
  // They are in its memory: what they take of it jobs cannot have, and they are gone when it restarts.
  virtual bool IsInMemory() const = 0;
  // A file without a name, on this tier: it is gone when it is closed.
  virtual absl::StatusOr<UniqueFd> OpenScratch() const = 0;
  virtual absl::StatusOr<std::vector<ImageKey>> List() const = 0;
  // OK if it is not there: deletion may be asked for twice. An error if the tier is away: what is in it is
  // not known.
  virtual absl::Status Delete(const ImageKey& key) = 0;
  // The image's folder, as a descriptor that only tells it from another one in its place: to be had before
  // the image is read, for Quarantine(). Not valid if nothing is there.
  virtual absl::StatusOr<UniqueFd> Hold(const ImageKey& key) const = 0;
  // Moves the damaged image that is held to damaged/, so that an older one counts. OK if nothing is in its
  // place; kAborted if another image is, which stays.
  virtual absl::Status Quarantine(const ImageKey& key, const UniqueFd& held) = 0;
  virtual absl::StatusOr<Bytes> FreeSpace() const = 0;
};

namespace store {
class Disk;
class KeyRing;
}  // namespace store

struct StoreOptions {
  // New images are encrypted, and encrypted ones can be read; null: neither.
  std::shared_ptr<const store::KeyRing> keys;
  // Where a draft's plain files lie until it is sealed; best in memory. Needed with `keys`; made if missing.
  std::string plain_folder;
  // A file of this machine that remembers which tier is at the root, from its first use on: another one in
  // its place, or an empty mount point, is not opened. Empty: any is.
  std::string remembered;
  // Which start of this machine this is. With `remembered`: a tier in memory is another one after each, as it
  // is to be. Empty: not known.
  std::string boot;
  // Somebody else's, who may be at work in it: kNotFound if there is none, and what dead writers have left
  // stays, for its owner to remove.
  bool visit = false;
  store::Disk* disk = nullptr;  // null: the real one. Outlives the store
};

// Opens (and makes) a directory tier at `root`. Removes drafts whose writer on this machine is dead.
// kUnavailable if another one is remembered there.
absl::StatusOr<std::unique_ptr<ImageStore>> OpenDirectoryStore(const std::string& root,
                                                               const StoreOptions& options = {});

// To look at only: nothing is made and nothing removed, but for what Decrypt() is asked to make, with `keys`
// (null: none). kNotFound if there is no store at `root`.
absl::StatusOr<std::unique_ptr<const ImageStore>> InspectDirectoryStore(
    const std::string& root, std::shared_ptr<const store::KeyRing> keys = nullptr);

}  // namespace siding
