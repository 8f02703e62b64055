// Damaged images leave their place: alone, or for a good one.
//
// Others may be at work in the tier: put another image there, or delete it. So what is moved is the folder
// that was found to be damaged, told by a descriptor that is held since before it was read: as long as that
// is open no other folder has its number.
#pragma once

#include "absl/status/status.h"
#include "common/files.h"
#include "store/layout.h"
#include "store/staging.h"

namespace siding::store {

// To damaged/, durably. kNotFound: nothing is in its place. kAborted: another image is, and stays.
absl::Status SetAside(const Layout& layout, const ImageKey& key, const UniqueFd& damaged);

// Moves a sealed draft into the place of the damaged image, durably, and that to damaged/. After an error the
// damaged one is where it was. kAborted: it is no longer in its place; what another process has put there
// stays, and what it has deleted does not come back.
//
// The two are exchanged, so at each moment, whoever dies or loses power, one of them is in the place. If that
// happens right after the exchange, the damaged one is in staging/ and is removed by the next sweep.
// Where the file system exchanges nothing (NFS, Lustre) the damaged one is moved away first: whoever dies
// then leaves it in damaged/ and its place empty, and a deletion in that moment is not noticed.
absl::Status ReplaceImage(const Layout& layout, const ImageKey& key, const UniqueFd& damaged,
                          StagingFolder& draft);

}  // namespace siding::store
