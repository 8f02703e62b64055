#include "agent/gpu/answer.h"

#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::gpu {
namespace {

using testing::SizeIs;

Answer Garbage() {
  Answer answer;
  std::memset(&answer, 0xff, sizeof answer);
  return answer;
}

TEST(GpuAnswer, TextsNeedNotEnd) {
  EXPECT_THAT(TextOf(Garbage()), SizeIs(sizeof Answer::text));
  EXPECT_THAT(DeviceOf(Garbage()).uuid, SizeIs(sizeof Device::uuid));
}

TEST(GpuAnswer, ThereAreNoMoreProcessesThanFitIn) {
  EXPECT_THAT(DeviceOf(Garbage()).processes, SizeIs(kMostProcesses));
}

TEST(GpuAnswer, SizesStayPositive) {
  EXPECT_EQ(DeviceOf(Garbage()).total.value, std::numeric_limits<int64_t>::max());
}

TEST(GpuAnswer, AnUnknownErrorIsOne) {
  Answer answer{};
  answer.result = 12345;
  EXPECT_TRUE(absl::IsInternal(StatusOf(answer, "lock", 7)));
}

}  // namespace
}  // namespace siding::gpu
