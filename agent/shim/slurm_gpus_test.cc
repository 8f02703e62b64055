#include "agent/shim/slurm_gpus.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr uid_t kNobody = 65534;

TEST(GpuLines, BothListsAndTheDevicesAreSaid) {
  EXPECT_EQ(GpuLines({"HOME=/", "SLURM_JOB_GPUS=0,1", "SLURM_STEP_GPUS=1"}, "0,1"),
            "job-gpus 0,1\nstep-gpus 1\ngpu-devices 0,1\n");
}

TEST(GpuLines, ATaskWithoutGpusSaysNothing) {
  EXPECT_EQ(GpuLines({"HOME=/", "XSLURM_JOB_GPUS=0", "SLURM_STEP_GPUS="}, "0,1"), "");
}

TEST(GpuLines, AListThatIsNoneCannotBecomeAnotherLine) {
  EXPECT_EQ(GpuLines({"SLURM_JOB_GPUS=0\nuid 0"}, ""), "job-gpus ?\n");
  EXPECT_EQ(GpuLines({"SLURM_JOB_GPUS=" + std::string(5000, '1')}, ""), "job-gpus ?\n");
}

class Devices : public ::testing::Test {
 protected:
  Devices() {
    char name[] = "/tmp/siding-devices-XXXXXX";
    folder_ = mkdtemp(name);
    for (const char* device : {"nvidia10", "nvidia0", "nvidia3", "nvidiactl", "nvidia-uvm", "null"})
      std::ofstream(folder_ + "/" + device) << "";
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  ~Devices() override { std::filesystem::remove_all(folder_); }
  void Allow(const std::string& device, unsigned mode) {
    std::filesystem::permissions(folder_ + "/" + device, std::filesystem::perms(mode));
  }

  std::string folder_;
};

TEST_F(Devices, WhereAllMayBeOpenedNoneIsNamed) { EXPECT_EQ(DevicesToOpen(folder_), ""); }

TEST_F(Devices, WithoutADriverNoneIsNamed) { EXPECT_EQ(DevicesToOpen("/nowhere"), ""); }

TEST_F(Devices, ThoseThatMayBeOpenedAreNamed) {
  for (const char* device : {"nvidia10", "nvidia0"}) Allow(device, 0666);
  Allow("nvidia3", 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Root is not asked for permissions, only for its cgroup's.
    if (geteuid() == 0 && setuid(kNobody) != 0) _exit(2);
    _exit(DevicesToOpen(folder_) == "0,10" ? 0 : 1);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the other user's process";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace siding
