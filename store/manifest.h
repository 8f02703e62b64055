// The manifest of an image: as text, and against what lies on the disk.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/store.h"

namespace siding {

std::string EncodeManifest(const Manifest& manifest);
// kDataLoss naming `path` and what was expected.
absl::StatusOr<Manifest> DecodeManifest(const std::string& text, const std::string& path);

// Reads every file of `folder` and compares sizes and checksums; kDataLoss names the first file that differs,
// is missing, or should not be there. `progress` (may be empty) gets bytes done, from several threads.
absl::Status VerifyFiles(const std::string& folder, const Manifest& manifest, const std::function<void(Bytes)>& progress);

// "xxh3:<32 hex digits>" of a whole file.
absl::StatusOr<ImageFileEntry> HashFile(const std::string& folder, const std::string& name,
                                        const std::function<void(Bytes)>& progress = {});

}  // namespace siding
