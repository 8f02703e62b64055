// A folder of files as an archive, and back: of a container's own layer of its root file system, and of its
// volumes.
//
// The archive is a tar (pax) in the form of OCI image layers: what the layer hides of those below is an empty
// file ".wh.NAME", a folder that hides all of the folder below has a file ".wh..wh..opq". Owners, modes,
// times, extended attributes, hard links and holes are kept. (OCI image specification, "Image Layer
// Filesystem Changeset".)
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"

namespace siding {

// Nothing in `folder` may change meanwhile. Sockets are left out: CRIU makes again what a process listens at.
// kFailedPrecondition: there is something that an archive cannot hold, a name that begins with ".wh." or a
// file or folder of which the layer has only a part (metacopy, redirect_dir); the error names it.
// kAborted: `abandon` was set from another thread.
absl::Status SaveLayer(const std::string& folder, const std::string& archive,
                       const std::atomic<bool>* abandon = nullptr);

// Puts it over what is in `folder`, in a process of its own whose root is that folder: no name in the archive
// or in the folder leads out of it. To be called by a program that has no other threads.
absl::Status PutLayerBack(const std::string& archive, const std::string& folder);

}  // namespace siding
