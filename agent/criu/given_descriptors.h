// Descriptors that CRIU has taken from the processes that it dumps, over a socket of its own: each with the
// process that it is of.
#pragma once

#include <sys/types.h>

#include <functional>

#include "absl/status/statusor.h"
#include "common/files.h"

namespace siding {

// Not thread-safe.
class GivenDescriptors {
 public:
  static absl::StatusOr<GivenDescriptors> Open();
  // The end that CRIU is to have.
  int theirs() const { return theirs_.get(); }
  // Those that have come by now; without `give` they are closed.
  void Take(const std::function<void(pid_t, UniqueFd)>& give) const;

 private:
  GivenDescriptors(UniqueFd ours, UniqueFd theirs) : ours_(std::move(ours)), theirs_(std::move(theirs)) {}
  UniqueFd ours_, theirs_;
};

}  // namespace siding
