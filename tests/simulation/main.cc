#include "tests/simulation/runner.h"
#include "tests/simulation/world.h"

int main(int argc, char** argv) {
  return siding::simulation::RunSimulation(argc, argv,
                                           "Simulated worlds of a controller, agents, users and mishaps",
                                           siding::simulation::RunWorld);
}
