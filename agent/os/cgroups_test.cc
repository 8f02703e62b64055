#include "agent/os/cgroups.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(CgroupMounts, FindsBothVersions) {
  CgroupMounts mounts = FindCgroupMounts(
      "30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu\n"
      "31 25 0:27 / /sys/fs/cgroup/freezer rw,relatime shared:6 master:1 - cgroup cgroup rw,freezer\n"
      "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
      "32 25 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(mounts.v1["freezer"], "/sys/fs/cgroup/freezer");
  EXPECT_EQ(mounts.v1["memory"], "/sys/fs/cgroup/memory");
  EXPECT_EQ(mounts.v1["pids"], "/sys/fs/cgroup/pids");
  EXPECT_EQ(mounts.v2, "/sys/fs/cgroup/unified");
}

TEST(CgroupMounts, NoneWithoutCgroups) {
  CgroupMounts mounts = FindCgroupMounts("20 1 0:1 / /proc rw - proc proc rw\n");
  EXPECT_TRUE(mounts.v1["freezer"].empty());
  EXPECT_TRUE(mounts.v2.empty());
}

}  // namespace
}  // namespace siding
