// An image of another tier becomes one of this.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"
#include "store/layout.h"
#include "store/staging.h"
#include "store/store.h"

namespace siding::store {

struct CopySource {
  std::string folder;         // of the image
  std::string manifest_text;  // as it is there
  Manifest manifest;
};

// Into the tier of `layout`. As ImageStore::CopyFrom(); returns how much was written. `commit` gets the draft
// when all of it is there, to move it into its place as CommitImage() does.
absl::StatusOr<Bytes> CopyImage(const Layout& layout, const CopySource& source, const CopyOptions& options,
                                const std::function<absl::Status(StagingFolder&)>& commit);

}  // namespace siding::store
