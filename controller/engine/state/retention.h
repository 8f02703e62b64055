// How long the controller remembers jobs that have ended.
#pragma once

#include "common/units.h"

namespace siding {

struct Retention {
  Duration keep_ended = std::chrono::hours(7 * 24);
  int keep_ended_jobs = 20000;  // at most so many of them: beyond, the oldest go first
};

}  // namespace siding
