#include "agent/os/freezer.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(FreezerState, OnlyWhenAllAreFrozen) {
  EXPECT_TRUE(IsFrozenText(FreezerKind::kCgroup2, "populated 1\nfrozen 1\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup2, "populated 1\nfrozen 0\n"));
  EXPECT_TRUE(IsFrozenText(FreezerKind::kCgroup1, "FROZEN\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup1, "FREEZING\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup1, "THAWED\n"));
}

}  // namespace
}  // namespace siding
