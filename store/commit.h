// The last step of every image that comes into a tier.
#pragma once

#include "absl/status/status.h"
#include "store/layout.h"
#include "store/staging.h"

namespace siding::store {

// Moves a sealed draft into its place, durably. kAlreadyExists if the place is taken. After an error the
// image is not visible, and the draft is where it was.
absl::Status CommitImage(const Layout& layout, const ImageKey& key, StagingFolder& draft);

}  // namespace siding::store
