// Compares the files of an image with its manifest.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "store/store.h"

namespace siding::store {

// Reads every file of `folder`. kDataLoss names the first file, in name order, that is missing, too many, of
// another size or of other content.
absl::Status VerifyFolder(const std::string& folder, const Manifest& manifest, const VerifyOptions& options);

}  // namespace siding::store
