// manifest.json as text; docs/design/store-format.md is its specification.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "store/store.h"

namespace siding::store {

// kInvalidArgument if a file's name or the metadata is not UTF-8, which JSON cannot carry, or if it is too
// long to be read again.
absl::StatusOr<std::string> ManifestToText(const Manifest& manifest);

// The longest text that is written or read. With it goes the memory that reading one can take.
inline constexpr size_t kLongestManifest = 64 << 20;
// And the most values in it, a file having five.
inline constexpr size_t kMostManifestValues = 1 << 20;

// kDataLoss with the field and what was expected there, if the text is not a manifest or was changed since;
// kFailedPrecondition if a newer program wrote it.
absl::StatusOr<Manifest> ParseManifest(const std::string& text);

// As Manifest::digest.
std::string DigestOf(const std::string& text);

// A manifest's text, with its own checksum made to fit the rest of it.
std::string WithOwnChecksum(std::string text);

}  // namespace siding::store
