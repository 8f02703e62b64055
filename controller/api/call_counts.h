// How many calls of the API have ended with which status.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"

namespace siding {

// Thread-safe. Counts from 0 with the process.
class CallCounts {
 public:
  // `code` is gRPC's, whose numbers are absl's.
  void Add(int code) {
    if (code >= 0 && code < kCodes) ++counts_[static_cast<size_t>(code)];
  }
  // By the name in lower case, "failed_precondition"; those that never came about as well.
  std::map<std::string, int64_t> ByResult() const {
    std::map<std::string, int64_t> results;
    for (int code = 0; code < kCodes; ++code)
      results[absl::AsciiStrToLower(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)))] =
          counts_[static_cast<size_t>(code)];
    return results;
  }

 private:
  static constexpr int kCodes = 17;
  std::array<std::atomic<int64_t>, kCodes> counts_{};
};

}  // namespace siding
