// The helper process and what the agent makes of it, with a driver library that needs no GPU.
#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "agent/gpu/fake_folder.h"
#include "agent/gpu/gpu_driver.h"
#include "agent/gpu/uuid.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr pid_t kJob = 4711;

class HelperDriverTest : public testing::Test {
 protected:
  HelperDriverTest() { folder_.Write(std::to_string(kJob), "0"); }
  void Write(const std::string& name, const std::string& text) { folder_.Write(name, text); }
  void Fault(const std::string& text) { folder_.Fault(text); }
  void NoFault() { folder_.NoFault(); }
  GpuState State(pid_t pid = kJob) {
    const auto state = driver_->State(pid);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(GpuState::kFailed);
  }

  FakeCudaFolder folder_;
  std::unique_ptr<GpuDriver> driver_ = NewGpuDriver(GPU_HELPER, {FAKE_CUDA_LIBRARY, FAKE_CUDA_LIBRARY});
};

TEST_F(HelperDriverTest, GoesThroughAllStatesAndBack) {
  EXPECT_EQ(State(), GpuState::kRunning);
  EXPECT_TRUE(driver_->Lock(kJob, kPatience).ok());
  EXPECT_EQ(State(), GpuState::kLocked);
  EXPECT_TRUE(driver_->Checkpoint(kJob, kPatience).ok());
  EXPECT_EQ(State(), GpuState::kCheckpointed);
  EXPECT_TRUE(driver_->Restore(kJob, {}, kPatience).ok());
  EXPECT_TRUE(driver_->Unlock(kJob, kPatience).ok());
  EXPECT_EQ(State(), GpuState::kRunning);
}

TEST_F(HelperDriverTest, ProcessThatTheDriverDoesNotKnowUsesNoGpu) { EXPECT_EQ(State(1), GpuState::kUnused); }

TEST_F(HelperDriverTest, CallInTheWrongStateSaysSo) {
  EXPECT_TRUE(absl::IsFailedPrecondition(driver_->Checkpoint(kJob, kPatience)));
}

TEST_F(HelperDriverTest, WhatIsNotSupportedIsCalledByTheDriversName) {
  Fault("checkpoint 801");
  ASSERT_TRUE(driver_->Lock(kJob, kPatience).ok());
  const absl::Status status = driver_->Checkpoint(kJob, kPatience);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("checkpoint of process 4711: CUDA_ERROR_NOT_SUPPORTED"));
}

TEST_F(HelperDriverTest, LockThatTheDriverGivesUpIsNotInTime) {
  Fault("lock 600");
  EXPECT_TRUE(absl::IsDeadlineExceeded(driver_->Lock(kJob, milliseconds(10))));
  EXPECT_EQ(State(), GpuState::kRunning);
}

TEST_F(HelperDriverTest, CrashOfTheDriverIsAnErrorAndTheNextCallHasANewHelper) {
  Fault("lock crash");
  EXPECT_TRUE(absl::IsUnavailable(driver_->Lock(kJob, kPatience)));
  NoFault();
  EXPECT_TRUE(driver_->Lock(kJob, kPatience).ok());
}

TEST_F(HelperDriverTest, CallThatHangsIsGivenUpAndTheNextCallHasANewHelper) {
  ASSERT_TRUE(driver_->Lock(kJob, kPatience).ok());
  Fault("checkpoint hang");
  EXPECT_TRUE(absl::IsDeadlineExceeded(driver_->Checkpoint(kJob, milliseconds(50))));
  NoFault();
  EXPECT_EQ(State(), GpuState::kLocked);
}

TEST_F(HelperDriverTest, CallsForOthersGoOnBesideALongOne) {
  Write("4712", "0");
  ASSERT_TRUE(driver_->Lock(kJob, kPatience).ok());
  Fault("checkpoint wait");
  std::atomic<bool> over = false;
  std::thread takes_long([&] {
    EXPECT_TRUE(driver_->Checkpoint(kJob, kPatience).ok());
    over = true;
  });
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_.path() + "/waits"); }));
  EXPECT_TRUE(driver_->Lock(4712, kPatience).ok());
  EXPECT_FALSE(over);
  NoFault();
  takes_long.join();
}

TEST_F(HelperDriverTest, GpusAreExchangedByTheirUuids) {
  ASSERT_TRUE(driver_->Lock(kJob, kPatience).ok());
  ASSERT_TRUE(driver_->Checkpoint(kJob, kPatience).ok());
  const GpuMove move{"GPU-00000000-0000-0000-0000-000000000001", "GPU-00000000-0000-0000-0000-000000000002"};
  ASSERT_TRUE(driver_->Restore(kJob, {move}, kPatience).ok());
  EXPECT_EQ(folder_.Read("moves"), "1 to 2");
}

TEST_F(HelperDriverTest, WithoutADriverItSaysWhy) {
  driver_ = NewGpuDriver(GPU_HELPER, {"libnothing.so.9", "libnothing.so.9"});
  const auto state = driver_->State(kJob);
  EXPECT_TRUE(absl::IsUnavailable(state.status()));
  EXPECT_THAT(std::string(state.status().message()), HasSubstr("libnothing.so.9"));
}

TEST_F(HelperDriverTest, DriverThatIsTooOldIsCalledSo) {
  driver_ = NewGpuDriver(GPU_HELPER, {"libm.so.6", "libm.so.6"});
  EXPECT_THAT(std::string(driver_->State(kJob).status().message()), HasSubstr("too old"));
}

TEST_F(HelperDriverTest, DriverThatDoesNotStartIsCalledByItsError) {
  Fault("init 3");
  EXPECT_THAT(std::string(driver_->State(kJob).status().message()), HasSubstr("does not start"));
}

TEST_F(HelperDriverTest, MissingHelperIsAnError) {
  driver_ = NewGpuDriver("/nowhere/helper");
  EXPECT_TRUE(absl::IsUnavailable(driver_->Lock(kJob, kPatience)));
}

constexpr char kFirst[] = "GPU-00000000-0000-0000-0000-000000000001";

TEST_F(HelperDriverTest, GpusAreToldWithWhatTheyHold) {
  Write("gpus", std::string(kFirst) + " 1000 300 0\nGPU-00000000-0000-0000-0000-000000000002 1000 0 1\n");
  const auto devices = driver_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2);
  EXPECT_EQ((*devices)[0].uuid, kFirst);
  EXPECT_EQ((*devices)[0].total, Bytes{1000 << 20});
  EXPECT_EQ((*devices)[0].used, Bytes{300 << 20});
  EXPECT_FALSE((*devices)[0].mig);
  EXPECT_TRUE((*devices)[1].mig);
}

TEST_F(HelperDriverTest, MachineWithoutGpusHasNone) {
  const auto devices = driver_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  EXPECT_TRUE(devices->empty());
}

TEST_F(HelperDriverTest, WithoutTheLibraryForGpusItSaysWhy) {
  driver_ = NewGpuDriver(GPU_HELPER, {FAKE_CUDA_LIBRARY, "libnothing.so.9"});
  EXPECT_TRUE(absl::IsUnavailable(driver_->Devices().status()));
  EXPECT_THAT(std::string(driver_->Devices().status().message()), HasSubstr("libnothing.so.9"));
}

int OpenDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(HelperDriverTest, ReplacedHelpersLeaveNothingBehind) {
  const int before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) {
    Fault("lock crash");
    EXPECT_FALSE(driver_->Lock(kJob, kPatience).ok());
  }
  NoFault();
  driver_.reset();
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(GpuUuid, ComesBackAsItWas) {
  const std::string text = "GPU-8c1e2f30-9d54-4e5b-8a7c-0123456789ab";
  const auto uuid = ParseGpuUuid(text);
  ASSERT_TRUE(uuid.ok());
  EXPECT_EQ(FormatGpuUuid(*uuid), text);
}

TEST(GpuUuid, OtherFormsAreErrorsThatSayWhatIsExpected) {
  for (const char* text :
       {"", "0", "MIG-8c1e2f30-9d54-4e5b-8a7c-0123456789ab", "GPU-8c1e2f30-9d54-4e5b-8a7c-0123456789aX",
        "GPU-8c1e2f3009d54-4e5b-8a7c-0123456789ab"}) {
    EXPECT_THAT(std::string(ParseGpuUuid(text).status().message()), HasSubstr("expected a GPU's UUID"))
        << text;
  }
}

}  // namespace
}  // namespace siding
