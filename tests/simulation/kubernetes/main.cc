#include "tests/simulation/kubernetes/world.h"
#include "tests/simulation/runner.h"

int main(int argc, char** argv) {
  return siding::simulation::RunSimulation(argc, argv,
                                           "Simulated Kubernetes clusters with siding's controller",
                                           siding::simulation::pods::RunWorld);
}
