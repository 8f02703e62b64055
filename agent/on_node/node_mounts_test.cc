#include "agent/on_node/node_mounts.h"

#include <gtest/gtest.h>

namespace siding {
namespace {

TEST(MountsAreSharedTest, AsTheRootIs) {
  EXPECT_TRUE(MountsAreShared("22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"));
  EXPECT_TRUE(MountsAreShared("22 1 254:0 / / rw,relatime master:3 shared:1 - ext4 /dev/vda rw\n"));
  EXPECT_FALSE(MountsAreShared("22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"));
  EXPECT_FALSE(MountsAreShared("22 1 254:0 / / rw,relatime master:1 - ext4 /dev/vda rw\n"));
}

TEST(MountsAreSharedTest, WhateverOthersAre) {
  EXPECT_FALSE(MountsAreShared(
      "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:21 / /run rw shared:2 - tmpfs tmpfs rw\n"));
}

TEST(MountsAreSharedTest, TheLastOneOfARootCounts) {
  EXPECT_FALSE(
      MountsAreShared("1 0 0:2 / / rw shared:1 - rootfs rootfs rw\n22 1 254:0 / / rw - ext4 /dev/vda rw\n"));
}

}  // namespace
}  // namespace siding
