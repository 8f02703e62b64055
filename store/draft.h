// An image being written in a directory tier.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "store/follower.h"
#include "store/layout.h"
#include "store/staging.h"
#include "store/store.h"

namespace siding::store {

class DirectoryDraft final : public ImageDraft {
 public:
  static absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const Layout& layout, const Encryption& encryption,
                                                           const ImageKey& key, const Manifest* base);

  const std::string& path() const override { return plain_ ? plain_->path() : folder_->path(); }
  Bytes BytesSoFar() const override { return std::max(follower_.seen(), Bytes{sealed_size_.load()}); }
  const Manifest* base() const override { return base_ ? &*base_ : nullptr; }
  bool is_near() const override { return near_; }
  absl::Status Share(const ImageFileEntry& file, const std::string& name) override;
  absl::Status RenameShared(const std::string& from, const std::string& to) override;
  using ImageDraft::Seal;
  absl::StatusOr<Manifest> Seal(std::map<std::string, std::string> metadata,
                                const std::function<bool()>& stop) override;
  absl::Status Commit() override;

 private:
  DirectoryDraft(const Layout& layout, std::shared_ptr<const KeyRing> keys, const ImageKey& key,
                 std::unique_ptr<StagingFolder> folder, std::unique_ptr<StagingFolder> plain,
                 std::optional<Manifest> base, bool near)
      : layout_(layout),
        keys_(std::move(keys)),
        key_(key),
        folder_(std::move(folder)),
        plain_(std::move(plain)),
        base_(std::move(base)),
        near_(near),
        // Of a dump that is compared with its base most is removed again.
        follower_(path(), /*only_count=*/plain_ != nullptr || (base_.has_value() && near)) {}

  absl::StatusOr<std::vector<ImageFileEntry>> ListFiles() const;
  absl::Status CheckShared(const std::string& name) const;
  absl::Status FinishFile(ImageFileEntry& file, PartialHash* known, const std::function<bool()>& stop) const;
  absl::Status EncryptFile(ImageFileEntry& file) const;

  const Layout layout_;
  const std::shared_ptr<const KeyRing> keys_;  // null: it is not encrypted
  const ImageKey key_;
  const std::unique_ptr<StagingFolder> folder_;
  // What was shared, and as which inode: another file in its place is not what was hashed.
  struct Shared {
    ImageFileEntry file;
    uint64_t inode = 0;
  };

  std::unique_ptr<StagingFolder> plain_;  // if it is encrypted, until it is sealed; then removed
  const std::optional<Manifest> base_;
  const bool near_;
  std::map<std::string, Shared> shared_;  // by name
  Follower follower_;                     // after the folder that it reads
  std::atomic<int64_t> sealed_size_{0};
  enum { kWriting, kUnsealable, kSealed, kCommitted } phase_ = kWriting;
};

}  // namespace siding::store
