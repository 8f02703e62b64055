#include "store/layout.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "common/status.h"

namespace siding::store {
namespace {

absl::Status Full(const Layout& layout, const std::string& what) {
  const auto space = FreeSpace(layout);
  return TierProblem(absl::ResourceExhaustedError(
      absl::StrCat("checkpoint store ", layout.root, " is full (",
                   space.ok() ? FormatBytes(*space) : std::string("unknown"), " free): ", what)));
}

constexpr char kTierProblem[] = "siding/tier-problem";

}  // namespace

std::string Describe(const ImageKey& key) { return absl::StrCat(key.checkpoint.value(), " rank ", key.rank); }

std::string BoundName(const ImageKey& key, const std::string& file) {
  return absl::StrCat(key.checkpoint.value(), "/", key.rank, "/", file);
}

absl::Status CheckKey(const ImageKey& key) {
  const std::string& name = key.checkpoint.value();
  const bool legal = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '-' || c == '_';
  });
  if (name.empty() || name[0] == '.' || name.size() > 100 || !legal) {
    return absl::InvalidArgumentError("\"" + name + "\" cannot name a checkpoint");
  }
  if (key.rank < 0) return absl::InvalidArgumentError("negative rank of checkpoint " + name);
  return absl::OkStatus();
}

std::optional<ImageKey> KeyOfFolders(const std::string& checkpoint, const std::string& rank) {
  ImageKey key{CheckpointId(checkpoint), 0};
  if (!absl::SimpleAtoi(rank, &key.rank) || std::to_string(key.rank) != rank) return std::nullopt;
  if (!CheckKey(key).ok()) return std::nullopt;
  return key;
}

absl::StatusOr<Bytes> FreeSpace(const Layout& layout) {
  const int64_t free = layout.disk->FreeSpace(layout.root);
  if (free < 0) return ErrnoError(errno, "statvfs " + layout.root);
  return Bytes{free};
}

absl::Status IoError(const Layout& layout, int error, const std::string& what) {
  if (error == ENOSPC || error == EDQUOT) return Full(layout, absl::StrCat(what, ": ", strerror(error)));
  if (error == EEXIST || error == ENOTEMPTY) return absl::AlreadyExistsError(what);
  return TierProblem(absl::InternalError(absl::StrCat(what, ": ", strerror(error))));
}

absl::Status IoError(const Layout& layout, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string message(status.message());
  if (absl::IsResourceExhausted(status)) return Full(layout, message);
  return TierProblem(absl::InternalError(message));
}

}  // namespace siding::store

namespace siding {

absl::Status TierProblem(absl::Status status) {
  if (!status.ok()) status.SetPayload(store::kTierProblem, absl::Cord());
  return status;
}

bool IsTierProblem(const absl::Status& status) { return status.GetPayload(store::kTierProblem).has_value(); }

}  // namespace siding
