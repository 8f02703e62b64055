#include "agent/gpu/allocated_gpus.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kA[] = "GPU-00000000-0000-0000-0000-00000000000a";
constexpr char kB[] = "GPU-00000000-0000-0000-0000-00000000000b";
constexpr char kC[] = "GPU-00000000-0000-0000-0000-00000000000c";

// A machine whose devices are not numbered in the driver's order.
absl::StatusOr<std::vector<std::string>> Find(const std::string& list, const std::string& devices = "") {
  return FindAllocatedGpus({list, devices}, {kA, kB, kC}, {{kA, 2}, {kB, 0}, {kC, 1}});
}

TEST(ReadGpuList, NumbersAreTakenOneByOne) {
  EXPECT_THAT(*ReadGpuList("0,2,11"), ElementsAre("0", "2", "11"));
}

TEST(ReadGpuList, ARangeHasBothItsEnds) {
  EXPECT_THAT(*ReadGpuList("0-2,5"), ElementsAre("0", "1", "2", "5"));
}

TEST(ReadGpuList, UuidsAreTakenAsTheyAre) {
  EXPECT_THAT(*ReadGpuList(std::string(kA) + "," + kB), ElementsAre(kA, kB));
}

TEST(ReadGpuList, NothingIsNoGpus) {
  EXPECT_THAT(*ReadGpuList(""), IsEmpty());
  EXPECT_THAT(*ReadGpuList("NoDevFiles"), IsEmpty());
}

TEST(ReadGpuList, WhatItDoesNotUnderstandIsNamed) {
  for (const std::string bad : {"x", "1-", "-1", "2-1", "0-99999", "MIG-7", "1,,2"}) {
    const auto list = ReadGpuList(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(list.status())) << bad;
    EXPECT_THAT(list.status().message(), HasSubstr("expected a number, a range, or a GPU's UUID")) << bad;
  }
}

TEST(FindAllocatedGpus, ATaskWithoutGpusHasNoneWhateverItMayOpen) {
  EXPECT_THAT(*Find("", "0,1"), IsEmpty());
}

TEST(FindAllocatedGpus, NumbersArePlacesInTheDriversOrder) { EXPECT_THAT(*Find("0,2"), ElementsAre(kA, kC)); }

TEST(FindAllocatedGpus, UuidsNameThemselves) { EXPECT_THAT(*Find(kB), ElementsAre(kB)); }

TEST(FindAllocatedGpus, WhatItMayOpenCountsMoreThanNumbers) { EXPECT_THAT(*Find("0", "1"), ElementsAre(kC)); }

TEST(FindAllocatedGpus, DevicesAreInTheDriversOrderToo) {
  EXPECT_THAT(*Find("0-1", "0,2"), ElementsAre(kA, kB));
}

TEST(FindAllocatedGpus, FewerDevicesThanGpusAreAnError) {
  EXPECT_EQ(Find("0,1", "1").status(), absl::FailedPreconditionError("it was given 2 GPUs, and may open 1"));
}

TEST(FindAllocatedGpus, ANumberBeyondTheMachinesIsAnError) {
  EXPECT_EQ(Find("3").status(), absl::NotFoundError("it was given GPU 3, and the GPU driver knows 3"));
}

TEST(FindAllocatedGpus, AUuidOfAnotherMachineIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(Find("GPU-00000000-0000-0000-0000-00000000000d").status()));
}

TEST(FindAllocatedGpus, ADeviceThatTheDriverDoesNotKnowIsAnError) {
  EXPECT_EQ(Find("0", "0,7").status(), absl::NotFoundError("the GPU driver knows no /dev/nvidia7"));
}

}  // namespace
}  // namespace siding
