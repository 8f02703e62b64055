// Programs of an image, with all that they need, as files of a node.
//
//   FOLDER/current                    a link to the one that counts:
//   FOLDER/programs-DIGEST/NAME       siding-launcher, for each program
//                         /programs/NAME
//                         /lib/*.so   their libraries
//                         /ld-linux-x86-64.so.2
//
// Others start them at any moment, also while a newer image's are put in their place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding {

// By their paths below the folder; those of NAMEs and `programs` can be run.
using NodeFiles = std::map<std::string, std::string>;

// The libraries in what the loader says with --list. An error names one that is missing.
absl::StatusOr<std::vector<std::string>> ParseLibraries(const std::string& listed);

// Reads programs (their paths by their names on the node), what they are linked to, and `launcher`.
absl::StatusOr<NodeFiles> ReadPrograms(const std::map<std::string, std::string>& programs,
                                       const std::string& launcher);

// Returns the folder with the files, which `current` leads to from then on, also after a power cut. Those
// from before it stay for who has just begun to run them, and earlier ones are removed.
absl::StatusOr<std::string> PutOnNode(const NodeFiles& files, const std::string& folder);

}  // namespace siding
