// The whole of sidingctl but for main().
#pragma once

namespace siding::cli {

// Flags -> one verb -> exit code: 0 done, 1 refused or failed, 2 what was asked makes no sense, whether
// sidingctl or the controller found out, 3 no controller answers; `submit --wait` has the job's own.
int Run(int argc, const char* const* argv);

}  // namespace siding::cli
