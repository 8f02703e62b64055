// libsodium's random bytes in a simulated world: keys are part of what is written to the API server, so they
// must follow from the seed as everything else does.
#pragma once

#include <cstdint>

namespace siding::simulation::pods {

// From now on, for the whole process. Not thread-safe.
void DrawKeysFrom(uint64_t seed);

}  // namespace siding::simulation::pods
