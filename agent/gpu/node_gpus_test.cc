#include "agent/gpu/node_gpus.h"

#include "agent/gpu/fake_gpu_driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Bytes kGiB{1 << 30};

std::unique_ptr<FakeGpuDriver> DriverWith(std::vector<std::string> uuids) {
  auto driver = std::make_unique<FakeGpuDriver>();
  for (std::string& uuid : uuids)
    driver->devices.push_back({.uuid = std::move(uuid), .name = "chip", .total = kGiB});
  return driver;
}

class NodeGpusTest : public testing::Test {
 protected:
  NodeGpus gpus_{DriverWith({"a", "b", "c"}), 100};
};

TEST_F(NodeGpusTest, NoGpuIsGivenTwice) {
  EXPECT_THAT(*gpus_.Take("1", 2), ElementsAre("a", "b"));
  EXPECT_THAT(*gpus_.Take("2", 1), ElementsAre("c"));
  EXPECT_TRUE(absl::IsResourceExhausted(gpus_.Take("3", 1).status()));
}

TEST_F(NodeGpusTest, WhatIsGivenBackIsGivenAgain) {
  ASSERT_TRUE(gpus_.Take("1", 3).ok());
  gpus_.Release("1");
  EXPECT_THAT(*gpus_.Take("2", 1), ElementsAre("a"));
}

TEST_F(NodeGpusTest, PreferredOnesComeFirst) {
  EXPECT_THAT(*gpus_.Take("1", 2, {"c"}), ElementsAre("c", "a"));
}

TEST_F(NodeGpusTest, PreferredOneOfAnotherTaskIsReplaced) {
  ASSERT_TRUE(gpus_.Take("1", 1, {"b"}).ok());
  EXPECT_THAT(*gpus_.Take("2", 1, {"b"}), ElementsAre("a"));
}

TEST_F(NodeGpusTest, FailureTakesNothing) {
  ASSERT_TRUE(gpus_.Take("1", 2).ok());
  EXPECT_FALSE(gpus_.Take("2", 2).ok());
  EXPECT_TRUE(gpus_.Take("3", 1).ok());
}

TEST_F(NodeGpusTest, WhatATaskWasFoundWithIsItsOwn) {
  gpus_.Keep("1", {"a", "c"});
  EXPECT_THAT(*gpus_.Take("2", 1), ElementsAre("b"));
}

TEST_F(NodeGpusTest, OneThatTwoTasksHaveIsFreeWhenBothHaveGivenItBack) {
  gpus_.Keep("1", {"a"});
  gpus_.Keep("2", {"a"});
  gpus_.Release("1");
  EXPECT_THAT(*gpus_.Take("3", 1), ElementsAre("b"));
  gpus_.Release("2");
  EXPECT_THAT(*gpus_.Take("4", 1), ElementsAre("a"));
}

// Two GPUs with 100 bytes in use on each; process 17 has 30 of the first, 18 has 70 of it and all of the
// other.
std::unique_ptr<FakeGpuDriver> BusyDriver() {
  auto driver = DriverWith({"a", "b"});
  driver->devices[0].used = driver->devices[1].used = Bytes{100};
  driver->devices[0].processes = {{17, Bytes{30}}, {18, Bytes{70}}};
  driver->devices[1].processes = {{18, Bytes{100}}};
  return driver;
}

TEST(NodeGpus, ATaskThatHasItsGpusAloneUsesAllThatIsInUse) {
  NodeGpus gpus(BusyDriver(), 2);
  gpus.Keep("1", {"a"});
  EXPECT_EQ(gpus.UsedBy({"a"}, {17}), Bytes{100});
}

TEST(NodeGpus, TasksThatShareGpusUseWhatTheirProcessesDo) {
  NodeGpus gpus(BusyDriver(), 2);
  for (const std::string task : {"1", "2"}) gpus.Keep(task, {"a", "b"});
  EXPECT_EQ(gpus.UsedBy({"a", "b"}, {16, 17}), Bytes{30});
  EXPECT_EQ(gpus.UsedBy({"a", "b"}, {18}), Bytes{170});
}

TEST(NodeGpus, TasksThatShareGpusHaveEqualSharesIfTheDriverDoesNotSay) {
  NodeGpus gpus(BusyDriver(), 2);
  for (const std::string task : {"1", "2"}) gpus.Keep(task, {"a", "b"});
  EXPECT_EQ(gpus.UsedBy({"a", "b"}, {99}), Bytes{100});
}

TEST(NodeGpus, AProcessOnAGpuThatIsNotItsTasksIsFound) {
  NodeGpus gpus(BusyDriver(), 2);
  EXPECT_EQ(gpus.FindOther({"a"}, {17}), "");
  EXPECT_EQ(gpus.FindOther({"a"}, {18}), "b");
}

TEST(NodeGpus, OneThatSomeProcessIsOnIsNotIdle) {
  auto driver = DriverWith({"a", "b"});
  driver->devices[0].processes = {{.pid = 17}};
  NodeGpus gpus(std::move(driver), 2);
  EXPECT_THAT(gpus.Idle(), ElementsAre("b"));
}

TEST(NodeGpus, ProcessesOnGpusAreThoseThatTheDriverTellsOf) {
  auto driver = DriverWith({"a", "b"});
  driver->devices[1].processes = {{.pid = 17}};
  NodeGpus gpus(std::move(driver), 2);
  EXPECT_THAT(gpus.MayBeOnGpus({17, 18}), ElementsAre(17));
}

TEST(NodeGpus, WhereTheDriverTellsOfNoneEachMayBeOnAGpu) {
  NodeGpus gpus(DriverWith({"a"}), 1);
  EXPECT_THAT(gpus.MayBeOnGpus({17, 18}), ElementsAre(17, 18));
}

TEST(NodeGpus, TakesNoMoreThanAllowed) { EXPECT_EQ(NodeGpus(DriverWith({"a", "b", "c"}), 2).count(), 2); }

TEST(NodeGpus, TakesOnlyThoseThatAreNamed) {
  NodeGpus gpus(DriverWith({"a", "b", "c"}), 100, {"b"});
  EXPECT_THAT(*gpus.Take("1", 1), ElementsAre("b"));
  EXPECT_EQ(gpus.count(), 1);
}

TEST(NodeGpus, PartsOfAGpuCannotBeDrained) {
  auto driver = DriverWith({"a"});
  driver->devices[0].mig = true;
  EXPECT_THAT(NodeGpus(std::move(driver), 1).problem(), HasSubstr("MIG"));
}

TEST(NodeGpus, FullGpuIsToldWithWhoIsInTheWay) {
  auto driver = DriverWith({"a"});
  driver->devices[0].free = Bytes{124 << 20};
  driver->devices[0].processes = {{.pid = 17}};
  NodeGpus gpus(std::move(driver), 1);
  EXPECT_TRUE(gpus.CheckFree({"a"}, Bytes{100 << 20}).ok());
  const absl::Status status = gpus.CheckFree({"a"}, Bytes{500 << 20});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("17"));
}

}  // namespace
}  // namespace siding
