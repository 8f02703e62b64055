// What is wrong with jobs and their checkpoints. Pure.
#pragma once

#include "cli/doctor/finding.h"

namespace siding::cli {

Findings JobsThatNeedAWord(const Answers& answers);  // nothing is left to restore
// They wait for what does not come by itself.
Findings JobsThatCannotGoOn(const Answers& answers);
Findings RestoresThatFail(const Answers& answers);
Findings BadCheckpoints(const Answers& answers);  // damaged, refused

}  // namespace siding::cli
