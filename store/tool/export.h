// `siding-store export`: one image as CRIU would have written it whole and plain, for `criu restore` and
// `crit`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "store/store.h"
#include "store/tool/terminal.h"
#include "store/tool/tool.h"

namespace siding::store {

struct ExportOptions {
  std::string folder;  // of the tier
  ImageKey key;
  std::string to;        // a folder that does not exist or is empty, not in the tier; its parent exists
  std::string key_file;  // as of KeyRing::Load(); empty: no key
  bool progress = false;
};

// Verifies the image, then writes its files, readable by nobody else: pages of parents in its own, decrypted,
// and without manifest.json, which would describe other files. The tier stays as it is, and shares no file
// with what is written. An error leaves nothing in `to`, nor `to` if it was not there. If this process dies,
// files may be left, and a folder `incomplete`; criu takes that for no image, since inventory.img comes last.
//
// Who may change the names in a folder above `to` could have it written elsewhere: such a folder is refused.
//
// kGood, kStopped; kNotGood: the image is damaged, or was not written, as is said on stderr. An error:
// nothing was begun, since it is not as the options say.
absl::StatusOr<ToolExit> Export(const ExportOptions& options, const Terminal& terminal);

}  // namespace siding::store
