#include "agent/node/rates.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "common/files.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr Bytes kGigabyte{1'000'000'000};

class RatesTest : public ::testing::Test {
 protected:
  RatesTest() {
    char name[] = "/tmp/siding-rates-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~RatesTest() override { std::filesystem::remove_all(folder_); }
  std::string file() const { return folder_ + "/rates.json"; }
  std::string folder_;
};

TEST(Quantile, Interpolates) {
  EXPECT_DOUBLE_EQ(Quantile({}, 0.2), 0);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.2), 5);
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2, 5, 4, 6}, 0.2), 2);
  EXPECT_DOUBLE_EQ(Quantile({0, 10}, 0.8), 8);
}

TEST_F(RatesTest, SpeedIsTheMedian) {
  Rates rates(file());
  for (int seconds : {1, 2, 5, 10, 20}) {
    rates.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(seconds));
  }
  EXPECT_DOUBLE_EQ(rates.Get(Medium::kLocal).dump().bytes_per_second(), 1e9 / 5);
  EXPECT_EQ(rates.Get(Medium::kLocal).restore().bytes_per_second(), 0);
  EXPECT_EQ(rates.Get(Medium::kShared).dump().bytes_per_second(), 0);
}

TEST_F(RatesTest, SpreadGrowsWithTheSamplesDifferences) {
  Rates even(file()), uneven(folder_ + "/other.json");
  for (int i = 0; i < 16; ++i) {
    even.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(4));
    uneven.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(i % 2 == 0 ? 2 : 8));
  }
  EXPECT_DOUBLE_EQ(even.Get(Medium::kLocal).dump().spread(), 0.25 / 4);
  EXPECT_NEAR(uneven.Get(Medium::kLocal).dump().spread(), std::log(2), 0.1);
}

TEST_F(RatesTest, OneSampleIsNotTrustedMuch) {
  Rates rates(file());
  rates.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(4));
  EXPECT_DOUBLE_EQ(rates.Get(Medium::kLocal).dump().spread(), 0.25);
}

TEST_F(RatesTest, WhatWasMeasuredInAnotherFolderIsForgotten) {
  Rates(file()).IsAt(Medium::kLocal, "/disk", "/disk");
  Rates rates(file());
  for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) {
    rates.Add(Medium::kLocal, transfer, kGigabyte, std::chrono::seconds(4));
    rates.Add(Medium::kShared, transfer, kGigabyte, std::chrono::seconds(4));
  }
  rates.IsAt(Medium::kLocal, "/disk", "/disk");
  EXPECT_TRUE(rates.Has(Medium::kLocal));
  rates.IsAt(Medium::kLocal, "/memory", "/disk");
  EXPECT_FALSE(rates.Has(Medium::kLocal));
  EXPECT_TRUE(rates.Has(Medium::kShared));
  EXPECT_FALSE(Rates(file()).Has(Medium::kLocal)) << "and it stays so";
}

TEST_F(RatesTest, WhatAnEarlierAgentMeasuredIsKept) {
  Rates rates(file());
  for (Transfer transfer : {Transfer::kDump, Transfer::kRestore})
    rates.Add(Medium::kLocal, transfer, kGigabyte, std::chrono::seconds(4));
  rates.IsAt(Medium::kLocal, "/disk", "/disk");
  EXPECT_TRUE(rates.Has(Medium::kLocal));
}

TEST_F(RatesTest, WhatAnEarlierAgentMeasuredElsewhereIsNot) {
  Rates rates(file());
  for (Transfer transfer : {Transfer::kDump, Transfer::kRestore})
    rates.Add(Medium::kLocal, transfer, kGigabyte, std::chrono::seconds(4));
  rates.IsAt(Medium::kLocal, "/memory", "/disk");
  EXPECT_FALSE(rates.Has(Medium::kLocal));
}

TEST_F(RatesTest, SmallTransfersTellTheOverheadOnly) {
  Rates rates(file());
  rates.Add(Medium::kShared, Transfer::kRestore, Bytes{1000}, std::chrono::milliseconds(80));
  EXPECT_EQ(rates.Get(Medium::kShared).restore().overhead_us(), 80000);
  EXPECT_EQ(rates.Get(Medium::kShared).restore().bytes_per_second(), 0);
  EXPECT_FALSE(rates.Has(Medium::kShared));
}

TEST_F(RatesTest, OldSamplesAreForgotten) {
  Rates rates(file());
  rates.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(1000));
  for (int i = 0; i < 40; ++i) rates.Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(1));
  EXPECT_DOUBLE_EQ(rates.Get(Medium::kLocal).dump().bytes_per_second(), 1e9);
}

TEST_F(RatesTest, SurviveARestart) {
  Rates(file()).Add(Medium::kLocal, Transfer::kDump, kGigabyte, std::chrono::seconds(2));
  EXPECT_DOUBLE_EQ(Rates(file()).Get(Medium::kLocal).dump().bytes_per_second(), 5e8);
}

TEST_F(RatesTest, DamagedFileCountsAsNone) {
  ASSERT_TRUE(WriteFileAtomically(file(), "{\"local.dump\": 3").ok());
  EXPECT_FALSE(Rates(file()).Has(Medium::kLocal));
}

TEST_F(RatesTest, ProbeMeasuresAndLeavesNothing) {
  Rates rates(file());
  const std::string tier = folder_ + "/tier";
  ASSERT_TRUE(MakeDirectories(tier).ok());
  ASSERT_TRUE(ProbeTier(tier, Medium::kLocal, rates).ok());
  EXPECT_TRUE(rates.Has(Medium::kLocal));
  EXPECT_GT(rates.Get(Medium::kLocal).restore().bytes_per_second(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(tier));
}

// They would go into all that is computed from them.
TEST_F(RatesTest, SamplesThatCannotBeAreLeftOut) {
  const std::string odd = R"({"local.dump": {"speeds": [-1, 0, 1e300, 5], "overheads": [-1]}})";
  ASSERT_TRUE(WriteFileAtomically(file(), odd).ok());
  const v1::Rate rate = Rates(file()).Get(Medium::kLocal).dump();
  EXPECT_DOUBLE_EQ(rate.bytes_per_second(), 5);
  EXPECT_EQ(rate.overhead_us(), 0);
  EXPECT_TRUE(std::isfinite(rate.spread()));
}

}  // namespace
}  // namespace siding
