// The newest controller that this node has worked for. Remembered for good: an older one that is still there,
// cut off from its journal and not knowing that another has taken over, finds no agent that obeys.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding {

// Not thread-safe.
class SeenEpoch {
 public:
  // `path` need not be there; its folder must. kDataLoss if something else than an epoch is in it.
  static absl::StatusOr<SeenEpoch> Open(std::string path);
  // kFailedPrecondition for a controller that is older than one seen before. OK is remembered, durably if
  // the disk lets it; if not, that is tried again with each call.
  absl::Status Accept(int64_t epoch);

 private:
  SeenEpoch(std::string path, int64_t newest) : path_(std::move(path)), newest_(newest) {}

  std::string path_;
  int64_t newest_;
  bool remembered_ = true;
};

}  // namespace siding
