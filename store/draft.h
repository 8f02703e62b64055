// An image being written in a directory tier.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "store/follower.h"
#include "store/layout.h"
#include "store/staging.h"
#include "store/store.h"

namespace siding::store {

class DirectoryDraft final : public ImageDraft {
 public:
  static absl::StatusOr<std::unique_ptr<ImageDraft>> Begin(const Layout& layout, const ImageKey& key);

  const std::string& path() const override { return folder_->path(); }
  Bytes BytesSoFar() const override { return std::max(follower_.seen(), Bytes{sealed_size_.load()}); }
  absl::StatusOr<Manifest> Seal(std::map<std::string, std::string> metadata) override;
  absl::Status Commit() override;

 private:
  DirectoryDraft(const Layout& layout, const ImageKey& key, std::unique_ptr<StagingFolder> folder)
      : layout_(layout), key_(key), folder_(std::move(folder)), follower_(folder_->path()) {}

  absl::StatusOr<std::vector<ImageFileEntry>> ListFiles() const;
  absl::Status FinishFile(ImageFileEntry& file, PartialHash* known) const;
  absl::Status MoveIntoPlace();

  const Layout layout_;
  const ImageKey key_;
  const std::unique_ptr<StagingFolder> folder_;
  Follower follower_;  // after folder_, which it reads
  std::atomic<int64_t> sealed_size_{0};
  enum { kWriting, kUnsealable, kSealed, kCommitted } phase_ = kWriting;
};

}  // namespace siding::store
