#include "common/logging.h"
#include "gtest/gtest.h"
#include "tests/simulation/kubernetes/world.h"

namespace siding::simulation::pods {
namespace {

class KubernetesReplay : public testing::Test {
 protected:
  KubernetesReplay() { spdlog::set_level(spdlog::level::off); }
};

TEST_F(KubernetesReplay, TheSameSeedGivesTheSameWorld) {
  for (uint64_t seed = 1; seed <= 10; ++seed)
    EXPECT_EQ(RunWorld(seed, false).hash, RunWorld(seed, false).hash) << "seed " << seed;
}

TEST_F(KubernetesReplay, AnotherSeedGivesAnotherWorld) {
  EXPECT_NE(RunWorld(1, false).hash, RunWorld(2, false).hash);
}

}  // namespace
}  // namespace siding::simulation::pods
