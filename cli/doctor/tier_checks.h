// What is wrong with the tiers that images are written into: each node's own disk, and shared storage. Pure.
#pragma once

#include "cli/doctor/finding.h"

namespace siding::cli {

// Agents say of a tier that has no room, is away, or does not answer, that nothing is free.
Findings TiersWithoutRoom(const Answers& answers);
Findings TiersTooSmall(const Answers& answers);  // for the largest job that may be checkpointed into them
Findings TiersNotMeasured(const Answers& answers);
Findings TiersInMemoryAlone(const Answers& answers);  // nothing copies what is in them
Findings SlowTiers(const Answers& answers);           // beside those of the other nodes

}  // namespace siding::cli
