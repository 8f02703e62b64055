#include "agent/gpu/probe.h"

#include "agent/gpu/fake_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kMemory{64 << 20};

class ProbeTest : public testing::Test {
 protected:
  ProbeTest() { folder_.Write("gpus", "GPU-00000000-0000-0000-0000-000000000001 1000 100 0\n"); }
  absl::StatusOr<GpuProbe> Probe() {
    if (gpus_ == nullptr) {
      gpus_ = std::make_unique<NodeGpus>(NewGpuDriver(GPU_HELPER, {FAKE_CUDA_LIBRARY, FAKE_CUDA_LIBRARY}), 8);
    }
    return ProbeGpu(*gpus_, true, GPU_PROBE, FAKE_CUDA_LIBRARY, kMemory);
  }

  FakeCudaFolder folder_;
  std::unique_ptr<NodeGpus> gpus_;
};

TEST_F(ProbeTest, MeasuresBothWays) {
  const auto probe = Probe();
  ASSERT_TRUE(probe.ok()) << probe.status();
  EXPECT_EQ(probe->bytes, kMemory);
  EXPECT_GT(probe->drain, Duration(0));
  EXPECT_GT(probe->refill, Duration(0));
}

TEST_F(ProbeTest, GpuIsFreeAgainAfterwards) {
  ASSERT_TRUE(Probe().ok());
  EXPECT_TRUE(gpus_->Take("1.1.0", 1).ok());
}

TEST_F(ProbeTest, GpuInUseIsLeftAlone) {
  ASSERT_TRUE(Probe().ok());
  ASSERT_TRUE(gpus_->Take("1.1.0", 1).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Probe().status()));
}

TEST_F(ProbeTest, DriverThatCannotDrainIsAnError) {
  folder_.Fault("checkpoint 801");
  EXPECT_TRUE(absl::IsUnimplemented(Probe().status()));
}

TEST_F(ProbeTest, ProbeThatGetsNoMemorySaysSo) {
  folder_.Fault("alloc 2");
  EXPECT_THAT(std::string(Probe().status().message()), HasSubstr("cuMemAlloc"));
}

}  // namespace
}  // namespace siding
