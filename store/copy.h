// An image of another tier becomes one of this.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "store/layout.h"
#include "store/store.h"

namespace siding::store {

struct CopySource {
  std::string folder;         // of the image
  std::string manifest_text;  // as it is there
  Manifest manifest;
};

// Into the tier of `layout`, which has no such image. As ImageStore::CopyFrom().
absl::StatusOr<Bytes> CopyImage(const Layout& layout, const CopySource& source, const CopyOptions& options);

}  // namespace siding::store
