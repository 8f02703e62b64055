#include "agent/gpu/drainable.h"

#include "agent/gpu/collectives.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

GpuProgram Client(pid_t pid, bool nccl) {
  GpuProgram program;
  program.pid = pid;
  program.is_client = true;
  program.nccl = nccl;
  return program;
}

GpuProgram Drainable(pid_t pid) {
  GpuProgram program = Client(pid, true);
  for (const auto& [name, value] : kDrainableCollectives) program.environment[name] = value;
  return program;
}

TEST(Sharing, OneProcessOnOneGpuSharesWithNobody) {
  EXPECT_THAT(WhyNotDrainable({Client(7, true)}, 1, 1), IsEmpty());
}
TEST(Sharing, TwoRanksWithNcclAsItComesAreNotTouched) {
  EXPECT_THAT(
      WhyNotDrainable({Client(7, true), Client(8, true)}, 1, 2),
      HasSubstr("2 processes on GPUs may share GPU memory, which the GPU driver cannot restore: process 7 "
                "lacks NCCL_NVLS_ENABLE=0"));
}
TEST(Sharing, TheReasonSaysWhatToSet) {
  EXPECT_THAT(WhyNotDrainable({Client(7, true), Client(8, true)}, 1, 2),
              HasSubstr("--gpu-collectives=drainable"));
}
TEST(Sharing, RanksThatUseSocketsAreSafe) {
  EXPECT_THAT(WhyNotDrainable({Drainable(7), Drainable(8)}, 1, 2), IsEmpty());
}
TEST(Sharing, OneRankWithoutTheSettingsIsEnough) {
  EXPECT_THAT(WhyNotDrainable({Drainable(7), Client(8, true)}, 1, 2), HasSubstr("process 8 lacks"));
}

class EachSetting : public testing::TestWithParam<CollectiveSetting> {};
TEST_P(EachSetting, IsNeeded) {
  GpuProgram changed = Drainable(8);
  changed.environment[GetParam().name] = "2";
  EXPECT_THAT(WhyNotDrainable({Drainable(7), changed}, 1, 2), HasSubstr(GetParam().name));
}
INSTANTIATE_TEST_SUITE_P(All, EachSetting, testing::ValuesIn(kDrainableCollectives));

TEST(Sharing, ProcessesWithoutNcclLibrariesMayHaveItLinkedIn) {
  EXPECT_THAT(WhyNotDrainable({Client(7, false), Client(8, false)}, 1, 1), HasSubstr("2 processes on GPUs"));
}
TEST(Sharing, OneProcessWithoutNcclMayHaveSeveralGpus) {
  EXPECT_THAT(WhyNotDrainable({Client(7, false)}, 1, 2), IsEmpty());
}
TEST(Sharing, WorkersThatOnlyInheritedDescriptorsDoNotCount) {
  GpuProgram worker = Client(8, true);
  worker.is_client = false;
  EXPECT_THAT(WhyNotDrainable({Client(7, true), worker}, 1, 1), IsEmpty());
}
TEST(Sharing, OneProcessOnSeveralGpusMaySpanThemByNccl) {
  EXPECT_THAT(WhyNotDrainable({Client(7, true)}, 1, 2), HasSubstr("one process with NCCL on 2 GPUs"));
}
TEST(Sharing, OneProcessOnSeveralGpusWithTheSettingsIsSafe) {
  EXPECT_THAT(WhyNotDrainable({Drainable(7)}, 1, 2), IsEmpty());
}
TEST(Sharing, RanksOnSeveralNodesAreNotTakenOffWhateverTheirSettings) {
  EXPECT_THAT(WhyNotDrainable({Drainable(7)}, 2, 1), HasSubstr("its 2 tasks may communicate with NCCL"));
}
TEST(Sharing, MappedLegacyIpcIsSharing) {
  GpuProgram child = Client(8, false);
  child.is_client = false;
  child.legacy_ipc = true;
  EXPECT_THAT(WhyNotDrainable({Client(7, false), child}, 1, 1), HasSubstr("process 8 shares GPU memory"));
}
TEST(Sharing, NvshmemIsSharing) {
  GpuProgram program = Client(7, false);
  program.nvshmem = true;
  EXPECT_THAT(WhyNotDrainable({program}, 1, 1), HasSubstr("NVSHMEM"));
}
TEST(Sharing, UcxBetweenProcessesIsSafeOnlyWithoutCudaIpc) {
  GpuProgram program = Drainable(7);
  program.ucx = true;
  EXPECT_THAT(WhyNotDrainable({program, Drainable(8)}, 1, 1), HasSubstr("UCX_TLS=^cuda_ipc"));
  program.environment["UCX_TLS"] = "^cuda_ipc";
  EXPECT_THAT(WhyNotDrainable({program, Drainable(8)}, 1, 1), IsEmpty());
}
TEST(Sharing, ExpandableSegmentsOfSeveralProcessesMayBeShared) {
  GpuProgram program = Drainable(7);
  program.environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments: True, backend: native";
  EXPECT_THAT(WhyNotDrainable({program, Drainable(8)}, 1, 1), HasSubstr("expandable segments"));
  EXPECT_THAT(WhyNotDrainable({program}, 1, 1), IsEmpty());
}

TEST(GpuProgramMaps, LibrariesAreKnownByTheirNames) {
  const GpuProgram program = ReadGpuProgramMaps(
      "7f00-7f01 r-xp 00000000 08:01 7 /home/u/site-packages/nvidia/nccl/lib/libnccl.so.2\n"
      "7f02-7f03 r-xp 00000000 08:01 8 /opt/libnvshmem_host.so.3\n"
      "7f04-7f05 r-xp 00000000 08:01 9 /usr/lib/ucx/libuct_cuda.so.0\n");
  EXPECT_TRUE(program.nccl && program.nvshmem && program.ucx);
  EXPECT_FALSE(program.legacy_ipc);
}
TEST(GpuProgramMaps, PyTorchMayHaveNcclLinkedIn) {
  EXPECT_TRUE(ReadGpuProgramMaps("7f00-7f01 r-xp 0 08:01 7 /p/torch/lib/libtorch_cuda.so\n").nccl);
}
TEST(GpuProgramMaps, NcclInsideTensorFlowIsFound) {
  EXPECT_TRUE(ReadGpuProgramMaps("7f00-7f01 r-xp 0 08:01 7 /p/tensorflow/libtensorflow_cc.so.2\n").nccl);
}
TEST(GpuProgramMaps, SegmentsOfLegacyIpcAreKnownAlsoWhenTheyHaveBeenRemoved) {
  EXPECT_TRUE(
      ReadGpuProgramMaps("7f00-7f01 rw-s 0 00:18 7 /dev/shm/cuda.shm.0.1a2.1 (deleted)\n").legacy_ipc);
}
TEST(GpuProgramMaps, FoldersOfThatNameAreNoLibraries) {
  EXPECT_FALSE(ReadGpuProgramMaps("7f00-7f01 r-xp 0 08:01 7 /opt/libnccl.so.2/train.bin\n").nccl);
}

// As seen with driver 580.
constexpr char kPlain[] =
    "200600000-200800000 rw-s 00000000 00:06 143                              /dev/nvidia0\n"
    "204a00000-204c00000 rw-s 204a00000 00:06 144                             /dev/nvidia-uvm\n";
constexpr char kManaged[] =
    "204a00000-204c00000 rw-s 204a00000 00:06 144                             /dev/nvidia-uvm\n"
    "7f258a000000-7f25aa000000 rw-s 7f258a000000 00:06 144                    /dev/nvidia-uvm\n";

TEST(GpuProgramMaps, ManagedMemoryIsSeen) {
  EXPECT_THAT(WhyNotDrainable({ReadGpuProgramMaps(kManaged)}, 1, 1), HasSubstr("managed"));
}
TEST(GpuProgramMaps, OrdinaryMemoryIsFine) {
  EXPECT_THAT(WhyNotDrainable({ReadGpuProgramMaps(kPlain)}, 1, 1), IsEmpty());
}

TEST(Environment, FirstValueCountsAsItDoesForPrograms) {
  const auto variables = ReadEnvironment(std::string("A=1\0A=2\0odd\0B=x=y\0", 18));
  EXPECT_EQ(variables.at("A"), "1");
  EXPECT_EQ(variables.at("B"), "x=y");
}

}  // namespace
}  // namespace siding
