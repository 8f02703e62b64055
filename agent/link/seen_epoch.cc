#include "agent/link/seen_epoch.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/logging.h"

namespace siding {

absl::StatusOr<SeenEpoch> SeenEpoch::Open(std::string path) {
  const auto text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return SeenEpoch(std::move(path), 0);
  if (!text.ok()) return text.status();
  int64_t newest = 0;
  if (!absl::SimpleAtoi(*text, &newest)) {
    return absl::DataLossError(
        absl::StrCat(path, ": '", *text, "'; expected the newest controller's epoch, a number"));
  }
  return SeenEpoch(std::move(path), newest);
}

absl::Status SeenEpoch::Accept(int64_t epoch) {
  if (epoch == newest_ && remembered_) return absl::OkStatus();
  if (epoch < newest_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its epoch is ", epoch, ", and this node has worked for a later one, ", newest_, " (", path_, ")"));
  }
  newest_ = epoch;
  const absl::Status written = WriteFileDurably(path_, absl::StrCat(epoch, "\n"));
  remembered_ = written.ok();
  if (!remembered_)
    spdlog::warn("the controller's epoch is not remembered: {}", std::string(written.message()));
  return absl::OkStatus();
}

}  // namespace siding
