#include "model/compaction.h"

#include <gmock/gmock.h>

#include <numeric>

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kMost = 8;

// A job of which each image has `written` of it anew, at random places, or always at the same ones.
class Row {
 public:
  Row(double written, bool same) : written_(written), same_(same) {}

  // Returns what the next image writes.
  double Next() {
    for (size_t i = 0; i < layers_.size(); ++i) {
      layers_[i].used *= same_ ? 1 : 1 - written_;
      if (same_ && i + 1 < layers_.size()) layers_[i].used = 0;
    }
    if (same_ && layers_.size() == 1) layers_[0].used = 1 - written_;
    const std::vector<size_t> again = LayersToWriteAgain(layers_, written_, kMost);
    double writes = written_;
    for (const size_t i : again) writes += layers_[i].used;
    for (size_t i = again.size(); i-- > 0;)
      layers_.erase(layers_.begin() + static_cast<std::ptrdiff_t>(again[i]));
    layers_.insert(layers_.begin(), {writes, writes});
    return writes;
  }
  double Mean(int images) {
    double sum = 0;
    for (int i = 0; i < images; ++i) sum += Next();
    return sum / images;
  }
  double stored() const {
    return std::accumulate(layers_.begin(), layers_.end(), 0.0,
                           [](double sum, const SharedLayer& layer) { return sum + layer.stored; });
  }
  size_t layers() const { return layers_.size() - 1; }  // beside its own

 private:
  const double written_;
  const bool same_;
  std::vector<SharedLayer> layers_ = {{1, 1}};  // newest first
};

TEST(CompactionTest, WhatIsUsedIsKept) {
  EXPECT_THAT(LayersToWriteAgain({{10, 8}, {90, 82}}, 10, kMost), IsEmpty());
}

TEST(CompactionTest, WhatNobodyUsesIsNot) {
  EXPECT_THAT(LayersToWriteAgain({{10, 0}, {10, 10}, {10, 0}, {80, 80}}, 10, kMost), ElementsAre(0, 2));
}

TEST(CompactionTest, WhereTooMuchIsStoredWhatGivesMostForWhatIsWrittenGoes) {
  EXPECT_THAT(LayersToWriteAgain({{40, 30}, {30, 5}, {80, 55}}, 10, kMost), ElementsAre(1));
}

TEST(CompactionTest, OfTooManyLayersTheSmallestGoWithThoseThatAreNoLargerThanWhatIsWritten) {
  EXPECT_THAT(LayersToWriteAgain({{1, 1}, {2, 2}, {4, 4}, {9, 9}, {80, 80}}, 1, 4), ElementsAre(0, 1, 2));
}

TEST(CompactionTest, WhereLittleIsSharedNothingIs) {
  EXPECT_THAT(LayersToWriteAgain({{20, 20}}, 80, kMost), ElementsAre(0));
}

TEST(CompactionTest, WithoutLayersThereIsNothingToDo) {
  EXPECT_THAT(LayersToWriteAgain({}, 5, kMost), IsEmpty());
}

TEST(CompactionTest, HoweverLongTheRowIsItsBoundsAreKept) {
  for (const double written : {0.001, 0.01, 0.05, 0.1, 0.3, 0.7}) {
    for (const bool same : {false, true}) {
      Row row(written, same);
      for (int i = 0; i < 500; ++i) {
        row.Next();
        ASSERT_LE(row.layers(), kMost) << written;
        ASSERT_LE(row.stored(), kMostStored + 1e-9) << written;
      }
    }
  }
}

// A job that writes the same pages again and again is never written whole.
TEST(CompactionTest, WhatIsWrittenAgainAndAgainIsAllThatIsWritten) {
  for (const double written : {0.01, 0.1, 0.3}) EXPECT_NEAR(Row(written, true).Mean(500), written, 1e-9);
}

// The bound is what it writes; if each ninth were whole it would be 0.114 of 0.003, and 0.12 of 0.01.
TEST(CompactionTest, AtRandomPlacesMostIsNotWrittenAgainOften) {
  EXPECT_LT(Row(0.003, false).Mean(2000), 0.02);
  EXPECT_LT(Row(0.01, false).Mean(2000), 0.05);
  EXPECT_LT(Row(0.1, false).Mean(2000), 0.2);
}

}  // namespace
}  // namespace siding
