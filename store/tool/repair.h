// `siding-store repair`: damaged images of a tier are replaced by the same ones of another tier.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "store/tool/terminal.h"
#include "store/tool/tool.h"

namespace siding::store {

struct RepairOptions {
  std::string folder;  // of the tier
  std::string from;    // of the other one, which stays as it is
  // None: all images of the tier. Of those that are named what is missing is put back as well.
  std::vector<std::string> checkpoints;
  bool dry_run = false;
  bool json = false;
  bool progress = false;
};

// Reads each image back. What is damaged is replaced by the image of the same key and digest; that of the
// tier is set aside in damaged/ when the other is whole beside it (ImageStore::CopyFrom). Files that the
// damaged one, or others of its job, still have good are linked, so that what images share stays shared. What
// was put in its place is read back once more.
//
// An agent may be at work in the tier: a draft is locked, the agent sees an image only when it is whole, and
// what it has deleted or replaced meanwhile stays so. What dead writers have left there is not touched.
//
// kGood if all are good afterwards, or would be (`dry_run`). kNotFound, kInvalidArgument: it is not as the
// options say.
absl::StatusOr<ToolExit> Repair(const RepairOptions& options, const Terminal& terminal);

}  // namespace siding::store
