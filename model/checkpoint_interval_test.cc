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

// An image of 40 MB every time, which stops its job for 50 ms and counts after 2 s.
IntervalTerms Terms() {
  IntervalTerms terms;
  terms.cost = {.stop = 50ms,
                .written = Bytes{40'000'000},
                .takes = 2s,
                .longest = 2s,
                .stop_due = 50ms,
                .written_due = Bytes{40'000'000}};
  return terms;
}

TEST(ChooseInterval, NobodyAsks) { EXPECT_EQ(ChooseInterval(Terms()), ChosenInterval()); }

TEST(ChooseInterval, OnlyTheStopCostsTheJobAnything) {
  IntervalTerms terms = Terms();
  terms.mean_time_to_failure = 1000000s;
  // Of computing between two images; the job computes while one is written, too.
  EXPECT_EQ(ChooseInterval(terms).interval, CheckpointInterval(50ms, 1000000s) - (2s - 50ms));
}

TEST(ChooseInterval, WhatIsLostIncludesTwoImagesBeingWritten) {
  IntervalTerms terms = Terms();
  terms.most_lost = 60s;
  EXPECT_EQ(ChooseInterval(terms).interval, 56s);
}

TEST(ChooseInterval, SomeImagesTakeLongerThanMost) {
  IntervalTerms terms = Terms();
  terms.cost.longest = 20s;
  terms.most_lost = 60s;
  EXPECT_EQ(ChooseInterval(terms).interval, 20s);
  terms.most_lost = 40s;
  EXPECT_EQ(ChooseInterval(terms), (ChosenInterval{10s, ChosenInterval::Bound::kTime}));
}

TEST(ChooseInterval, TheShorterOfTwoWishesCounts) {
  IntervalTerms terms = Terms();
  terms.most_lost = 60s;
  terms.mean_time_to_failure = 1000000s;
  EXPECT_EQ(ChooseInterval(terms).interval, 56s);
  terms.mean_time_to_failure = 1000s;
  EXPECT_LT(ChooseInterval(terms).interval, 56s);
}

TEST(ChooseInterval, AtMostHalfOfTheTimeAnImageIsWritten) {
  IntervalTerms terms = Terms();
  terms.most_lost = 1s;
  EXPECT_EQ(ChooseInterval(terms), (ChosenInterval{2s, ChosenInterval::Bound::kTime}));
}

TEST(ChooseInterval, IsNoLessThanASecond) {
  IntervalTerms terms = Terms();
  terms.cost.takes = terms.cost.longest = 60ms;
  terms.most_lost = 100ms;
  EXPECT_EQ(ChooseInterval(terms).interval, 1s);
}

TEST(ChooseInterval, ItStandsStillForNoLongerThanItMay) {
  IntervalTerms terms = Terms();
  terms.cost.stop = terms.cost.stop_due = 2s;
  terms.most_lost = 10s;
  terms.most_stopped = 0.05;  // 2 s of 40, in which one is written for 2 s
  EXPECT_EQ(ChooseInterval(terms), (ChosenInterval{38s, ChosenInterval::Bound::kStop}));
}

TEST(ChooseInterval, WhereFailuresAreFrequentItMayStandStillForLonger) {
  IntervalTerms terms = Terms();
  terms.cost.stop = terms.cost.stop_due = 2s;
  terms.most_lost = 10s;
  terms.most_stopped = 0.05;
  terms.mean_time_to_failure = 100s;
  EXPECT_EQ(ChooseInterval(terms).interval, CheckpointInterval(2s, 100s));
}

TEST(ChooseInterval, ForFailuresAsMuchIsWrittenAsIsWorthIt) {
  IntervalTerms terms = Terms();
  terms.mean_time_to_failure = 1000s;
  const ChosenInterval free = ChooseInterval(terms);
  terms.bytes_per_second = 1;
  EXPECT_EQ(ChooseInterval(terms), free);
}

TEST(ChooseInterval, NoMoreIsWrittenThanMayBe) {
  IntervalTerms terms = Terms();
  terms.most_lost = 10s;
  terms.bytes_per_second = 1e6;  // an image every 40 s, the 2 s included that one takes
  EXPECT_EQ(ChooseInterval(terms), (ChosenInterval{38s, ChosenInterval::Bound::kBandwidth}));
}

// An image of 400 MB is behind it, and a tenth of that is to be made up for before the next.
TEST(ChooseInterval, WhatIsDueDecidesWhenTheNextOneComes) {
  IntervalTerms terms = Terms();
  terms.cost.written = Bytes{400'000'000};
  terms.most_lost = 10s;
  terms.bytes_per_second = 1e6;
  EXPECT_EQ(ChooseInterval(terms).interval, 38s);
  EXPECT_EQ(LongestInterval(terms), 398s) << "for the one after it may be as large";
  terms.cost.stop = 20s;
  terms.most_stopped = 0.01;
  EXPECT_EQ(LongestInterval(terms), 1998s);
}

TEST(LongestInterval, IsNoShorterThanTheNext) {
  IntervalTerms terms = Terms();
  terms.cost.written = Bytes{30'000'000};
  terms.most_lost = 10s;
  terms.bytes_per_second = 1e6;
  EXPECT_EQ(LongestInterval(terms), ChooseInterval(terms).interval);
}

}  // namespace
}  // namespace siding
