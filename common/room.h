// Room for a file that will be written later, on a disk that may be full by then.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace siding {

// Makes the file `room`, if there is none, with the blocks of so many bytes.
absl::Status TakeRoom(const std::string& room, size_t bytes, int mode = 0644);

// As WriteFileDurably() (common/files.h), in the blocks of `room`, which takes the place of `path`.
// kOutOfRange if it is too small. After an error `path` is as it was, and the room may be used again; but not
// if only the folder could not be synced, when the room is `path` already.
absl::Status WriteInRoom(const std::string& room, const std::string& path, absl::string_view content);

}  // namespace siding
