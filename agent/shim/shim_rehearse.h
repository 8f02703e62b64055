// siding-shim --rehearse FOLDER: restores FOLDER/request.json's image and ends what comes of it before it
// runs; see agent/checkpoint/rehearsal.h. It exits with 0 if CRIU takes the image; else FOLDER/failed.json
// says why not. It ends with whoever has started it, and all that it has made with it; and on SIGTERM, when
// that has ended.
#pragma once

#include <string>

namespace siding {

inline constexpr char kRehearse[] = "--rehearse";

// The exit code.
int Rehearse(const std::string& folder);

}  // namespace siding
