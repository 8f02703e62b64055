#include "agent/launch/freezer.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(FreezerMounts, FindsBothHierarchies) {
  const FreezerMounts mounts = FindFreezerMounts(
      "30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu\n"
      "31 25 0:27 / /sys/fs/cgroup/freezer rw,relatime shared:6 master:1 - cgroup cgroup rw,freezer\n"
      "32 25 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(mounts.freezer1, "/sys/fs/cgroup/freezer");
  EXPECT_EQ(mounts.cgroup2, "/sys/fs/cgroup/unified");
}

TEST(FreezerMounts, NoneWithoutCgroups) {
  const FreezerMounts mounts = FindFreezerMounts("20 1 0:1 / /proc rw - proc proc rw\n");
  EXPECT_TRUE(mounts.freezer1.empty());
  EXPECT_TRUE(mounts.cgroup2.empty());
}

TEST(FreezerState, OnlyWhenAllAreFrozen) {
  EXPECT_TRUE(IsFrozenText(FreezerKind::kCgroup2, "populated 1\nfrozen 1\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup2, "populated 1\nfrozen 0\n"));
  EXPECT_TRUE(IsFrozenText(FreezerKind::kCgroup1, "FROZEN\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup1, "FREEZING\n"));
  EXPECT_FALSE(IsFrozenText(FreezerKind::kCgroup1, "THAWED\n"));
}

}  // namespace
}  // namespace siding
