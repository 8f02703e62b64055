// The program around simulated worlds: runs them, and says of each that goes wrong what is wrong with it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/outcome.h"

namespace siding::simulation {

// Of one world; prints everything that happens if `print`.
using WorldRunner = Outcome (*)(uint64_t seed, bool print);

// `what`: for --help. Returns the program's exit code.
int RunSimulation(int argc, char** argv, const std::string& what, WorldRunner run);

}  // namespace siding::simulation
