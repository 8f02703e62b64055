// siding-store: looks at a tier, whether or not siding is running. It changes nothing.
#pragma once

#include <ostream>

namespace siding::store {

// The exit code: 0 if all that was looked at is good, 1 if something is not, 2 if the command line or the
// folder is not what was expected.
int RunTool(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace siding::store
