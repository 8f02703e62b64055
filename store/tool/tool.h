// siding-store, for administrators: shows what is in a tier, reads it back, writes an image as CRIU's own
// files, and replaces damaged images from another tier. It works whether or not siding is running; only
// `repair` changes a tier.
#pragma once

#include <functional>
#include <ostream>

namespace siding::store {

// What it ends with.
enum ToolExit : int {
  kGood = 0,
  kNotGood = 1,  // an image is not good, or what was asked for could not be done
  kUsage = 2,    // the command line or a folder is not what was expected
  kStopped = 3,  // `stop` said so; nothing half is left
};

// Returns a ToolExit. `stop` is asked all the time, from several threads; once it says true it has to go on
// saying so.
int RunTool(
    int argc, const char* const* argv, std::ostream& out, std::ostream& err,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace siding::store
