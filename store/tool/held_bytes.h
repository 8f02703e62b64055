// What files take on a disk, where one with several names is there once.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>

#include "common/units.h"

namespace siding::store {

class HeldBytes {
 public:
  // Of all files below the folder that are not counted yet. What goes meanwhile is not there; what may not be
  // read is left out.
  Bytes Add(const std::string& folder);

 private:
  std::set<std::pair<dev_t, ino_t>> counted_;
};

}  // namespace siding::store
