// The key of siding's marks on pods, as a file beside the journal that only the controller may read.
#pragma once

#include <string>

#include "controller/platform/kubernetes/reconcile/seal.h"

namespace siding::kubernetes {

class SealFile final : public SealKeeper {
 public:
  explicit SealFile(std::string path);
  // kFailedPrecondition: there is something else in it.
  absl::StatusOr<std::string> Read() override;
  absl::Status Keep(const std::string& key) override;

 private:
  const std::string path_;
};

}  // namespace siding::kubernetes
