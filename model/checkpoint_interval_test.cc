#include "model/checkpoint_interval.h"

#include <cmath>

#include "gtest/gtest.h"

namespace siding {
namespace {

using namespace std::chrono_literals;

// Expected time to finish `work` with failures at rate 1/m and a checkpoint of d after every tau of work;
// restarts are free. Daly's complete model.
double Expected(double work, double tau, double d, double m) {
  return m * (std::exp((tau + d) / m) - 1) * work / tau;
}

TEST(CheckpointInterval, IsYoungsForSmallCosts) {
  EXPECT_NEAR(ToSeconds(CheckpointInterval(1s, 1000000s)), std::sqrt(2e6), 2);
}

TEST(CheckpointInterval, NoOtherIntervalIsMuchBetter) {
  for (double d : {10.0, 100.0, 600.0}) {
    const double m = 7200, tau = ToSeconds(CheckpointInterval(FromSeconds(d), FromSeconds(m)));
    const double its = Expected(1e6, tau, d, m);
    for (double factor : {0.25, 0.5, 0.8, 0.9, 1.1, 1.25, 2.0, 4.0}) {
      EXPECT_LT(its, 1.001 * Expected(1e6, tau * factor, d, m)) << d << " * " << factor;
    }
  }
}

TEST(CheckpointInterval, IsTheMeanTimeIfFailuresComeFasterThanCheckpoints) {
  EXPECT_EQ(CheckpointInterval(100s, 50s), 50s);
}

}  // namespace
}  // namespace siding
