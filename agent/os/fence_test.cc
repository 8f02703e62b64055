#include "agent/os/fence.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/os/folder_for_test.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;

// A tree of plain files that look like cgroups.
class FenceTest : public ::testing::Test {
 protected:
  void Put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + file).parent_path());
    std::ofstream(folder_ + "/" + file) << text;
  }
  std::string Get(const std::string& file) { return ReadFile(folder_ + "/" + file).value_or("(none)"); }
  // A task of a machine with version 2 that holds so much.
  TaskFence Task2(int64_t used, int64_t cache = 0) {
    Put("t/memory.max", "max\n");
    Put("t/memory.swap.max", "max\n");
    Put("t/memory.oom.group", "0\n");
    Put("t/memory.current", std::to_string(used) + "\n");
    Put("t/memory.stat", "anon 5\nactive_file 0\ninactive_file " + std::to_string(cache) + "\n");
    Put("t/memory.events", "low 0\nhigh 0\nmax 7\noom 0\noom_kill 0\n");
    Put("t/pids.max", "max\n");
    Put("t/pids.current", "3\n");
    return {folder_ + "/t", folder_ + "/t"};
  }

  const FolderForAll made_;
  const std::string folder_ = made_ / "cgroups";
};

TEST_F(FenceTest, PassesTheControllersOfVersion2OnToTheTasks) {
  Put("cgroup.controllers", "cpu memory pids\n");
  Put("cgroup.subtree_control", "cpu memory pids\n");
  Put("siding/cgroup.subtree_control", "");
  Put("siding/n1/cgroup.subtree_control", "");
  const Fence fence = Fence::In({folder_, "", ""}, "n1", {});
  EXPECT_EQ(fence.problem(), "");
  EXPECT_EQ(Get("cgroup.subtree_control"), "cpu memory pids\n");  // it was there already
  // Of plain files the last word stays.
  EXPECT_EQ(Get("siding/cgroup.subtree_control"), "+pids");
  EXPECT_EQ(Get("siding/n1/cgroup.subtree_control"), "+pids");
  EXPECT_THAT(fence.For("7.1.0").Folders(), ElementsAre(folder_ + "/siding/n1/7.1.0"));
}

TEST_F(FenceTest, SaysWhatIsMissingIfItIsWanted) {
  Put("cgroup.controllers", "cpu pids\n");
  for (const char* folder : {"", "siding/", "siding/n1/"})
    Put(std::string(folder) + "cgroup.subtree_control", "");
  const Fence both = Fence::In({folder_, "", ""}, "n1", {});
  EXPECT_EQ(both.problem(), "this machine has no cgroup controller for memory");
  EXPECT_EQ(both.Limits(Bytes{1 << 20}, 10).memory.value, 0);
  EXPECT_EQ(both.Limits(Bytes{1 << 20}, 10).processes, 10);
  EXPECT_EQ(Fence::In({folder_, "", ""}, "n1", {.memory = false}).problem(), "");
  EXPECT_EQ(Fence::In({}, "n1", {}).problem(), "this machine has no cgroup controller for memory, pids");
  const Fence none = Fence::In({}, "n1", {false, false});
  EXPECT_EQ(none.problem(), "");
  EXPECT_TRUE(none.For("7.1.0").Folders().empty());
}

TEST_F(FenceTest, OneControllerOfEachVersion) {
  Put("v2/cgroup.controllers", "pids\n");
  for (const char* folder : {"v2/", "v2/siding/", "v2/siding/n1/"})
    Put(std::string(folder) + "cgroup.subtree_control", "");
  Put("v1/tasks", "");
  const Fence fence = Fence::In({folder_ + "/v2", folder_ + "/v1", ""}, "n1", {});
  EXPECT_EQ(fence.problem(), "");
  EXPECT_THAT(fence.For("7.1.0").Folders(),
              ElementsAre(folder_ + "/v1/siding/n1/7.1.0", folder_ + "/v2/siding/n1/7.1.0"));
}

TEST_F(FenceTest, HoldsATaskOfVersion2) {
  const TaskFence fence = Task2(1000);
  EXPECT_TRUE(fence.Hold({Bytes{4096}, 20}));
  EXPECT_EQ(Get("t/memory.oom.group"), "1");
  EXPECT_TRUE(fence.EndsAsOne());
  EXPECT_EQ(Get("t/memory.max"), "4096");
  EXPECT_EQ(Get("t/memory.swap.max"), "0");
  EXPECT_EQ(Get("t/pids.max"), "20");
  EXPECT_EQ(fence.Processes(), 3);
  fence.Raise(Bytes{1000});
  EXPECT_EQ(Get("t/memory.max"), "5096");
  EXPECT_EQ(fence.MemoryLimit().value, 5096);
  EXPECT_TRUE(fence.Hold({Bytes{4096}, 20}));
  EXPECT_EQ(Get("t/memory.max"), "4096");
  EXPECT_EQ(Get("t/pids.max"), "20");
  fence.Open();
  EXPECT_EQ(Get("t/memory.max"), "max");
  EXPECT_EQ(Get("t/memory.swap.max"), "max");
  EXPECT_EQ(Get("t/pids.max"), "max");
  fence.Raise(Bytes{1000});
  EXPECT_EQ(Get("t/memory.max"), "max");
}

constexpr int64_t kMiB = 1 << 20;

TEST_F(FenceTest, ATaskThatHoldsMoreIsNotEndedForIt) {
  EXPECT_FALSE(Task2(900 * kMiB).Hold({Bytes{400 * kMiB}, 0}));
  EXPECT_EQ(Get("t/memory.max"), std::to_string(964 * kMiB));
  // What the kernel can read again from files is none of it.
  EXPECT_TRUE(Task2(900 * kMiB, 800 * kMiB).Hold({Bytes{400 * kMiB}, 0}));
  EXPECT_EQ(Get("t/memory.max"), std::to_string(400 * kMiB));
}

TEST_F(FenceTest, WhatIsNotWrittenYetCannotBeReadAgain) {
  const TaskFence fence = Task2(900 * kMiB, 800 * kMiB);
  Put("t/memory.stat",
      "inactive_file " + std::to_string(800 * kMiB) + "\nfile_dirty " + std::to_string(700 * kMiB) + "\n");
  EXPECT_FALSE(fence.Hold({Bytes{400 * kMiB}, 0}));
}

TEST_F(FenceTest, SlackIsKeptBelowTheLimitToo) {
  EXPECT_FALSE(Task2(399 * kMiB).Hold({Bytes{400 * kMiB}, 0}, Bytes{100 * kMiB}));
  EXPECT_EQ(Get("t/memory.max"), std::to_string(499 * kMiB));
}

TEST_F(FenceTest, ATaskThatHoldsMoreGetsNoMoreEachTime) {
  const TaskFence fence = Task2(900 * kMiB);
  EXPECT_FALSE(fence.Hold({Bytes{400 * kMiB}, 0}));
  Put("t/memory.current", std::to_string(940 * kMiB) + "\n");
  EXPECT_FALSE(fence.Hold({Bytes{400 * kMiB}, 0}));
  EXPECT_EQ(Get("t/memory.max"), std::to_string(964 * kMiB));
  // Nor by what was opened for a dump.
  const Bytes before = fence.MemoryLimit();
  fence.Raise(Bytes{500 * kMiB});
  EXPECT_FALSE(fence.Hold({Bytes{400 * kMiB}, 0}, Bytes{0}, before));
  EXPECT_EQ(Get("t/memory.max"), std::to_string(964 * kMiB));
}

TEST_F(FenceTest, OfATaskWithoutALimitNothingIsHeld) {
  EXPECT_TRUE(Task2(9000).Hold({Bytes{0}, 0}));
  EXPECT_EQ(Get("t/memory.max"), "max");
  EXPECT_EQ(Get("t/pids.max"), "max");
  EXPECT_TRUE(TaskFence("", "").Hold({Bytes{1}, 1}));
  EXPECT_TRUE(TaskFence(folder_ + "/gone", folder_ + "/gone").Hold({Bytes{1}, 1}));
}

TEST_F(FenceTest, OutOfMemoryIsTheTasksOnlyIfItHadReachedItsLimit) {
  const TaskFence fence = Task2(0);
  EXPECT_FALSE(fence.IsOutOfMemory(Bytes{4096}));
  Put("t/memory.events", "max 7\noom 0\noom_kill 1\n");  // the machine had none left
  EXPECT_FALSE(fence.IsOutOfMemory(Bytes{4096}));
  Put("t/memory.events", "max 7\noom 1\noom_kill 1\n");
  EXPECT_TRUE(fence.IsOutOfMemory(Bytes{4096}));
}

TEST_F(FenceTest, CountsWhatWasKilledForMemoryWhoseverItWas) {
  const TaskFence fence = Task2(0);
  EXPECT_EQ(fence.KilledForMemory(), 0);
  Put("t/memory.events", "max 7\noom 0\noom_kill 3\noom_group_kill 1\n");
  EXPECT_EQ(fence.KilledForMemory(), 3);
  Put("m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(TaskFence(folder_ + "/m", "").KilledForMemory(), 2);
  EXPECT_EQ(TaskFence(folder_ + "/gone", "").KilledForMemory(), 0);
  EXPECT_EQ(TaskFence("", "").KilledForMemory(), 0);
}

TEST_F(FenceTest, ATaskWithoutALimitHasNotReachedIt) {
  Put("m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  Put("m/memory.max_usage_in_bytes", "4096\n");
  EXPECT_FALSE(TaskFence(folder_ + "/m", "").IsOutOfMemory(Bytes{0}));
}

TEST_F(FenceTest, HoldsATaskOfVersion1) {
  Put("m/memory.limit_in_bytes", "9223372036854771712\n");
  Put("m/memory.memsw.limit_in_bytes", "9223372036854771712\n");
  Put("m/memory.usage_in_bytes", "1000\n");
  Put("m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  Put("m/memory.max_usage_in_bytes", "4096\n");
  const TaskFence fence(folder_ + "/m", "");
  EXPECT_FALSE(fence.EndsAsOne());
  EXPECT_TRUE(fence.Hold({Bytes{4096}, 20}));
  EXPECT_EQ(Get("m/memory.limit_in_bytes"), "4096");
  EXPECT_EQ(Get("m/memory.memsw.limit_in_bytes"), "4096");
  EXPECT_FALSE(fence.IsOutOfMemory(Bytes{4096}));
  Put("m/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_TRUE(fence.IsOutOfMemory(Bytes{4096}));
  Put("m/memory.max_usage_in_bytes", "1000\n");  // the machine had none left
  EXPECT_FALSE(fence.IsOutOfMemory(Bytes{4096}));
}

TEST(ParseFence, NamesWhatItExpects) {
  EXPECT_TRUE(ParseFence("memory,pids")->memory);
  EXPECT_TRUE(ParseFence("memory,pids")->processes);
  EXPECT_FALSE(ParseFence("pids")->memory);
  EXPECT_FALSE(ParseFence("none")->processes);
  for (const char* text : {"", "memory,", "all", "none,pids"}) {
    EXPECT_THAT(std::string(ParseFence(text).status().message()),
                ::testing::HasSubstr("expected memory, pids, both or none"))
        << text;
  }
}

TEST_F(FenceTest, AScoreBelowZeroIsNotPassedOn) {
  for (const auto& [before, after] : {std::pair{"-900\n", "0"}, {"0\n", "0"}, {"300\n", "300"}}) {
    Put("score", before);
    EndOomProtection((folder_ + "/score").c_str());
    EXPECT_EQ(std::atoi(Get("score").c_str()), std::atoi(after)) << before;
  }
  EndOomProtection((folder_ + "/none").c_str());
}

}  // namespace
}  // namespace siding
