#include "agent/os/mounts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;

TEST(Mounts, AreReadWithAndWithoutOptionalFields) {
  EXPECT_THAT(ParseMounts("22 1 0:20 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
                          "95 22 0:4 net:[4026532] /run/netns/a\\040b rw - nsfs nsfs rw\n"
                          "no mount\n"),
              ElementsAre(Mount{"/", "ext4"}, Mount{"/run/netns/a b", "nsfs"}));
}

TEST(Mounts, OfOthersComeAndGo) {
  EXPECT_TRUE(IsTransient({"/run/netns/blue", "nsfs"}, 1000));
  EXPECT_TRUE(IsTransient({"/run/user/1001", "tmpfs"}, 1000));
  EXPECT_TRUE(IsTransient({"/run/user/1001/doc", "fuse.portal"}, 1000));
  EXPECT_TRUE(IsTransient({"/var/lib/docker/overlay2/4f/merged", "overlay"}, 1000));
  EXPECT_TRUE(IsTransient({"/var/lib/kubelet/pods/7/volumes/x", "tmpfs"}, 1000));
  EXPECT_TRUE(IsTransient({"/run/credentials/sshd.service", "ramfs"}, 0));
  EXPECT_TRUE(IsTransient({"/var/lib/siding/memory", "tmpfs"}, 0));
}

TEST(Mounts, ThatAJobMayNeedStay) {
  EXPECT_FALSE(IsTransient({"/", "overlay"}, 1000));
  EXPECT_FALSE(IsTransient({"/scratch", "nfs4"}, 1000));
  EXPECT_FALSE(IsTransient({"/run/user/1000", "tmpfs"}, 1000));
  EXPECT_FALSE(IsTransient({"/run/user/someone", "tmpfs"}, 1000));
  EXPECT_FALSE(IsTransient({"/var/lib/docker", "ext4"}, 1000));
  EXPECT_FALSE(IsTransient({"/home/ada", "autofs"}, 1000));
  EXPECT_FALSE(IsTransient({"/var/lib/sidings", "tmpfs"}, 1000));
  EXPECT_FALSE(IsTransient({"/var/lib/siding/shared", "nfs4"}, 1000));
}

}  // namespace
}  // namespace siding
