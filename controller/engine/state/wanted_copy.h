#pragma once

#include "common/ids.h"

namespace siding {

// A checkpoint on nodes' own disks that is to be in shared storage.
struct WantedCopy {
  CheckpointId checkpoint;
  CheckpointId base;  // an earlier one of its job that is there; empty: none
};

}  // namespace siding
