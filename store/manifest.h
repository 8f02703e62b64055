// manifest.json as text; docs/store-format.md is its specification.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace siding::store {

// kInvalidArgument if a file's name or the metadata is not UTF-8, which JSON cannot carry.
absl::StatusOr<std::string> ManifestToText(const Manifest& manifest);

// kDataLoss with the field and what was expected there, if the text is not a manifest or was changed since;
// kFailedPrecondition if a newer program wrote it.
absl::StatusOr<Manifest> ParseManifest(const std::string& text);

// A manifest's text, with its own checksum made to fit the rest of it.
std::string WithOwnChecksum(std::string text);

}  // namespace siding::store
