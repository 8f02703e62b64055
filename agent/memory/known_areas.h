// What CRIU is to know of the mappings of processes that it stops: for /proc/PID/smaps the kernel looks at
// each page, which takes 20 ms for each GiB, so it is read before they are stopped. CRIU compares the
// mappings that there are then, and reads them itself if they are others; that flags of one have changed it
// cannot see, so they are compared afterwards (deploy/criu-files-as-user.patch).
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files.h"
#include "common/units.h"

namespace siding {

// Of the text of smaps the first line of each mapping, and its flags.
std::string AreasOf(absl::string_view smaps);

// Of two such texts: the mapping of which flags differ that an image keeps, "7f0000000000"; empty: of none
// that begins at the same place.
std::string WhatDiffers(absl::string_view before, absl::string_view after);

// Not thread-safe.
class KnownAreas {
 public:
  // Of these processes. Nothing is read yet.
  static absl::StatusOr<KnownAreas> Make(const std::vector<pid_t>& pids);
  // The file of each, that CRIU is to have open (CriuDump::known_areas).
  std::map<pid_t, int> files() const;
  // Fills them, anew if it has before. They run; one that cannot be read is not known.
  void Read();
  // That the last Read() has.
  Duration took() const { return took_; }
  // They run again. kAborted: one has other flags now than Read() found, so CRIU may have been told wrong
  // ones.
  absl::Status Check() const;

 private:
  struct Known {
    UniqueFd file;
    std::string areas;
  };
  std::map<pid_t, Known> known_;
  Duration took_{0};
};

}  // namespace siding
