#include "sim/image_row.h"

#include "gtest/gtest.h"

namespace siding::sim {
namespace {

TEST(ImageRow, EndsWhereParentsWouldHoldHalfAsMuchAgain) {
  EXPECT_EQ(RowOf(0.1).images, 5);
  EXPECT_EQ(RowOf(0.25).images, 2);
  EXPECT_EQ(RowOf(0.6).images, 1);
  EXPECT_FALSE(RowOf(0.1).stops_job);
}
TEST(ImageRow, HasNineImagesAtMostAndThenStopsTheJob) {
  for (double share : {0.0, 0.01, 0.05}) {
    EXPECT_EQ(RowOf(share).images, 9);
    EXPECT_TRUE(RowOf(share).stops_job);
  }
}

// Each fifth is whole, any other has a tenth.
TEST(ImageRow, InItsRowAnImageHasWhatWasWrittenSince) {
  EXPECT_NEAR(RowOf(0.1).NewSince(9, 8), 0.1, 1e-9);
  EXPECT_NEAR(RowOf(0.1).NewSince(9, 5), 0.4, 1e-9);
}
TEST(ImageRow, OfANewRowAllIsNew) {
  EXPECT_NEAR(RowOf(0.1).NewSince(5, 4), 1, 1e-9);
  EXPECT_NEAR(RowOf(0.1).NewSince(8, 4), 1.3, 1e-9);
}
TEST(ImageRow, WithoutAnEarlierOneAllIsNew) {
  EXPECT_NEAR(RowOf(0.1).NewSince(0, -1), 1, 1e-9);
  EXPECT_NEAR(RowOf(0.1).NewSince(3, -1), 1.3, 1e-9);
}
TEST(ImageRow, WholeOnesAreAllNew) { EXPECT_EQ(ImageRow().NewSince(7, 6), 1); }
TEST(ImageRow, TheMeanIsThatOfAllPlaces) {
  const ImageRow row = RowOf(0.1);
  for (int n : {1, 2, 4, 7, 11}) {
    double sum = 0;
    for (int image = 20; image < 40; ++image) sum += row.NewSince(image, image - n);
    EXPECT_NEAR(row.MeanNew(n), sum / 20, 1e-9) << n;
  }
}

}  // namespace
}  // namespace siding::sim
