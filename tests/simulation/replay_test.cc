#include "common/logging.h"
#include "gtest/gtest.h"
#include "tests/simulation/world.h"

namespace siding::simulation {
namespace {

class Replay : public testing::Test {
 protected:
  Replay() { spdlog::set_level(spdlog::level::off); }
};

TEST_F(Replay, TheSameSeedGivesTheSameWorld) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(RunWorld(seed, false).hash, RunWorld(seed, false).hash) << "seed " << seed;
}

TEST_F(Replay, AnotherSeedGivesAnotherWorld) { EXPECT_NE(RunWorld(1, false).hash, RunWorld(2, false).hash); }

}  // namespace
}  // namespace siding::simulation
