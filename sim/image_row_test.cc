#include "sim/image_row.h"

#include "gtest/gtest.h"
#include "model/compaction.h"

namespace siding::sim {
namespace {

TEST(ImageRow, TheFirstIsWhole) {
  EXPECT_TRUE(RowOf(0.1).IsWhole(0));
  EXPECT_EQ(RowOf(0.1).Share(0), 1);
}
// Of the first one 0.9^6 is used by then, and it is not kept beside six tenths.
TEST(ImageRow, OthersHaveWhatWasWrittenUntilTooMuchIsStored) {
  for (int image = 1; image < 6; ++image) EXPECT_EQ(RowOf(0.1).Share(image), 0.1);
  EXPECT_NEAR(RowOf(0.1).Share(6), 0.1 + 0.531441, 1e-9);
}
TEST(ImageRow, ALaterImageHasNoEnd) {
  for (double image : {13.0, 100.0, 1e9}) EXPECT_FALSE(RowOf(0.1).IsWhole(image));
}
// The two before hold 0.3 beside 1, so each second one is whole.
TEST(ImageRow, OneThatWouldShareLittleIsWhole) {
  const ImageRow& row = RowOf(0.3);
  for (double image : {2.0, 10.0, 1000.0}) {
    EXPECT_TRUE(row.IsWhole(image));
    EXPECT_NEAR(row.Share(image), 1, 1e-9);
    EXPECT_FALSE(row.IsWhole(image + 1));
    EXPECT_EQ(row.Share(image + 1), 0.3);
  }
  EXPECT_NEAR(row.MeanShare(), 0.65, 1e-9);
  EXPECT_EQ(row.Sharing(), 0.5);
}

TEST(ImageRow, NewIsWhatWasWrittenSince) {
  EXPECT_EQ(RowOf(0.1).NewSince(5, 5), 0);
  EXPECT_NEAR(RowOf(0.1).NewSince(5, 3), 0.2, 1e-9);
  EXPECT_NEAR(RowOf(0.1).NewSince(5, 0), 0.5, 1e-9);
}
TEST(ImageRow, WithoutAnEarlierOneAllThatIsKeptIsNew) {
  EXPECT_EQ(RowOf(0.1).NewSince(0, -1), 1);
  EXPECT_NEAR(RowOf(0.1).NewSince(5, -1), 1.5, 1e-9);
  EXPECT_NEAR(RowOf(0.1).NewSince(6, -1), 0.631441 + 0.5, 1e-9);
  EXPECT_NEAR(RowOf(0.3).NewSince(100, -1), (1 + 1.3) / 2, 1e-9);
}
TEST(ImageRow, BehindTheFirstOnesTheMeanIsNew) {
  EXPECT_NEAR(RowOf(0.3).NewSince(100, 99), (1 + 0.3) / 2, 1e-9);
  EXPECT_NEAR(RowOf(0.3).NewSince(100, 98), (1 + 1.3) / 2, 1e-9);
  EXPECT_NEAR(RowOf(0.3).NewSince(100, 1), (1 + 1.3) / 2, 1e-9);
}
TEST(ImageRow, TheNewIsMoreWhereFewerAreThere) {
  for (double written : {0.003, 0.05, 0.1, 0.3, 0.7}) {
    EXPECT_EQ(RowOf(written).MeanNew(0), 0);
    for (int n = 0; n < 3000; ++n) ASSERT_LE(RowOf(written).MeanNew(n), RowOf(written).MeanNew(n + 1));
    EXPECT_LE(RowOf(written).MeanNew(3000), kMostStored);
  }
}

TEST(ImageRow, OfAJobThatWritesAllEachIsWhole) {
  for (double image : {0.0, 1.0, 7.0, 100.0}) {
    EXPECT_TRUE(RowOf(1).IsWhole(image));
    EXPECT_EQ(RowOf(1).Share(image), 1);
    EXPECT_EQ(RowOf(1).NewSince(image, image - 1), 1);
  }
  EXPECT_EQ(RowOf(1).NewSince(100, 50), 1);
  EXPECT_EQ(RowOf(1).Sharing(), 0);
}
TEST(ImageRow, OfAJobThatWritesNothingOnlyTheFirstHasAnything) {
  EXPECT_EQ(RowOf(0).MeanShare(), 0);
  EXPECT_EQ(RowOf(0).NewSince(100, 1), 0);
}
TEST(ImageRow, WhereTheSamePagesAreWrittenNoOtherIs) {
  const ImageRow& row = RowOf(0.1, true);
  for (double image : {1.0, 9.0, 10.0, 100.0}) {
    EXPECT_EQ(row.Share(image), 0.1);
    EXPECT_NEAR(row.NewSince(image, image - 1), 0.1, 1e-9);
    EXPECT_NEAR(row.NewSince(image, 0), 0.1, 1e-9);
  }
  EXPECT_NEAR(row.NewSince(5, -1), 1.1, 1e-9);
}

// What images write in the mean, of so many that what comes first does not matter.
double LongMean(double written) {
  constexpr int kImages = 40'000;
  std::vector<SharedLayer> layers = {{1, 1}};
  double sum = 0;
  for (int i = 0; i < kImages; ++i) {
    for (SharedLayer& layer : layers) layer.used *= 1 - written;
    const std::vector<size_t> again = LayersToWriteAgain(layers, written, 8);
    double its = written;
    for (size_t k = again.size(); k-- > 0;) {
      its += layers[again[k]].used;
      layers.erase(layers.begin() + static_cast<std::ptrdiff_t>(again[k]));
    }
    layers.insert(layers.begin(), {its, its});
    sum += its;
  }
  return sum / kImages;
}
TEST(ImageRow, ARoundWritesWhatALongRowDoes) {
  for (double written : {0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3, 0.7}) {
    const double mean = LongMean(written);
    EXPECT_NEAR(RowOf(written).MeanShare(), mean, 0.02 * mean) << written;
    EXPECT_NEAR(RowOf(written).MeanNew(1), mean, 0.02 * mean) << written;
  }
}
TEST(ImageRow, ARoundIsShort) {
  for (double written : {0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.3, 0.7}) {
    EXPECT_GE(RowOf(written).round(), 10);
    EXPECT_LE(RowOf(written).round(), 20);
  }
}
TEST(ImageRow, OfEachShareThereIsOne) {
  EXPECT_EQ(&RowOf(0.1), &RowOf(0.1));
  EXPECT_NE(&RowOf(0.1), &RowOf(0.1, true));
}

}  // namespace
}  // namespace siding::sim
