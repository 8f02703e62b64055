#include "sim/efficiency.h"

#include <cmath>

#include "gtest/gtest.h"

namespace siding::sim {
namespace {

const CheckpointWay kStill{"still", 60, 60, 90};
const CheckpointWay kBeside{"beside", 2, 60, 90};

TEST(Efficiency, WithoutFailuresOnlyStopsCost) {
  EXPECT_DOUBLE_EQ(Efficiency(kStill, kNever, 540), 0.9);
  EXPECT_EQ(Efficiency(kStill, kNever, BestInterval(kStill, kNever)), 1);
}

// Daly's equation, by hand: 1000 e^0.09 (e^0.66 - 1) / 600.
TEST(Efficiency, IsDalysWhereTheJobStandsStill) {
  EXPECT_NEAR(1 / Efficiency(kStill, 1000, 600),
              1000 * std::exp(90 / 1000.0) * (std::exp(660 / 1000.0) - 1) / 600, 1e-9);
}

TEST(Efficiency, NoIntervalIsBetterThanTheBest) {
  for (const CheckpointWay& way : {kStill, kBeside}) {
    const double best = BestInterval(way, 20000);
    EXPECT_GT(Efficiency(way, 20000, best), Efficiency(way, 20000, best * 1.05));
    EXPECT_GT(Efficiency(way, 20000, best), Efficiency(way, 20000, best / 1.05));
  }
}

TEST(Efficiency, AnImageCountsBeforeTheNextIsBegun) { EXPECT_NEAR(BestInterval(kBeside, 100), 58, 1e-6); }

TEST(Efficiency, FallsWithFailures) {
  double last = 1;
  for (double mean : {1e6, 1e5, 1e4, 1e3, 1e2}) {
    const double its = Efficiency(kStill, mean, BestInterval(kStill, mean));
    EXPECT_LT(its, last);
    last = its;
  }
}

TEST(Efficiency, IsBetterWhereTheImageIsWrittenBesideTheJob) {
  EXPECT_GT(Efficiency(kBeside, 20000, BestInterval(kBeside, 20000)),
            Efficiency(kStill, 20000, BestInterval(kStill, 20000)));
}

TEST(Efficiency, OfAMachineThatFailsAllTheTimeIsNothing) {
  EXPECT_EQ(Efficiency(kStill, 1e-3, BestInterval(kStill, 1e-3)), 0);
}

TEST(Efficiency, GpusFailAsWell) {
  EfficiencyTerms terms;
  EXPECT_LT(MeanTimeToFailure(terms, 8, 0.2), MeanTimeToFailure(terms, 4, 0.2));
}

// docs/results/checkpoint-stop.md
TEST(Efficiency, WithoutGpusAnImageBesideTheJobStopsItForNoLessThanMeasured) {
  EfficiencyTerms terms;
  terms.page_fault = 0;
  terms.memory = kGib;
  EXPECT_GE(WaysOf(terms, 0).back().stop, 0.035);
  terms.memory = 4 * kGib;
  EXPECT_GE(WaysOf(terms, 0).back().stop, 0.118);
}
TEST(Efficiency, EachPageThatIsWrittenIsAPageFault) {
  EfficiencyTerms with, without;
  without.page_fault = 0;
  EXPECT_NEAR(WaysOf(with, 0).back().stop - WaysOf(without, 0).back().stop,
              1e-6 * 0.1 * with.memory / kPageSize, 1e-9);
}
TEST(Efficiency, NumbersMustBeFinite) {
  EfficiencyTerms terms;
  EXPECT_TRUE(Check(terms).ok());
  terms.memory = kNever;
  EXPECT_EQ(Check(terms).message(), "memory: expected a number, 0 or more");
}

TEST(Efficiency, GpusOfANodeShareItsBandwidth) {
  EfficiencyTerms terms;
  EXPECT_EQ(WaysOf(terms, 2).back().stop, WaysOf(terms, 1).back().stop);
  EXPECT_GT(WaysOf(terms, 64).back().stop, WaysOf(terms, 1).back().stop);
}

TEST(Efficiency, WhatIsGivenIsNotSaidToBeMeasured) {
  EfficiencyTerms terms;
  EXPECT_EQ(EfficiencyText(EfficiencyJson(terms)).find("as given"), std::string::npos);
  terms.gpu_drain = 25e9;
  EXPECT_NE(EfficiencyText(EfficiencyJson(terms)).find("as given"), std::string::npos);
}

}  // namespace
}  // namespace siding::sim
