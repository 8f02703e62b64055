#include "sim/protection_schedule.h"

#include <vector>

#include "gtest/gtest.h"

namespace siding::sim {
namespace {

constexpr double kBytes = kGib;

// Of a job on one node of 10 whose images have 1 GiB; to write it takes 10 s, a tenth of it 1 s. The first
// two images stop it for 5 s, any other for 1.
struct World {
  World() {
    job.trace = {0, 1e6, 1e6, 1};
    job.bytes = kBytes;
    p.overhead = 0;
    p.node_bandwidth = kBytes / 10;
    p.shared_bandwidth = 1e12;
    p.image_stop = 0;
    p.image_stop_per_gib = 1;
    p.untracked_stop_per_gib = 5;
    p.page_fault = 0;
    policy.most_lost_work = std::chrono::seconds(122);
    policy.checkpoint_bandwidth = 0.5;
    policy.checkpoint_stops = 1;
  }
  ProtectionSchedule Schedule() const { return {job, policy, p, 10}; }

  Job job;
  Parameters p;
  Policy policy;
};

World Gang() {
  World world;
  world.job.trace.nodes = 2;
  return world;
}

World WholeImages() {
  World world;
  world.p.whole_images = true;
  return world;
}

// To write an image to the node's own disk takes 1 s, and a tenth of it 0.1.
World OnDisks() {
  World world;
  world.p.local_bandwidth = kBytes;
  world.policy.checkpoint_tier = Tier::kLocal;
  return world;
}

TEST(ProtectionSchedule, WithoutOneAllTimeIsWork) {
  World world;
  world.policy.most_lost_work = Duration(0);
  const ProtectionSchedule none = world.Schedule();
  EXPECT_FALSE(none.protects());
  EXPECT_EQ(none.Work(5000), 5000);
  EXPECT_EQ(none.TimeFor(5000), 5000);
  EXPECT_EQ(none.Durable(5000), 0);
  EXPECT_EQ(none.Written(5000), 0);
  EXPECT_EQ(none.Stopped(5000), 0);
  EXPECT_EQ(none.MostLost(5000), 0);
  EXPECT_EQ(none.BusyUntil(5000), 0);
}

TEST(ProtectionSchedule, OnDemandJobsHaveNoneUnlessThatIsAskedFor) {
  World world;
  world.job.on_demand = true;
  EXPECT_FALSE(world.Schedule().protects());
  world.p.protect_on_demand = true;
  EXPECT_TRUE(world.Schedule().protects());
}

// At 122 - 2 * 10 s; it stops the job for 5 s and counts 10 later.
TEST(ProtectionSchedule, TheFirstImageIsOrderedByItsSizeAlone) {
  World world;
  world.policy.checkpoint_bandwidth = world.policy.checkpoint_stops = 0.001;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_EQ(schedule.Written(101.9), 0);
  EXPECT_EQ(schedule.Written(102.1), kBytes);
}
TEST(ProtectionSchedule, TheFirstImageIsNotOrderedSoonerThanItTakes) {
  World world;
  world.policy.most_lost_work = std::chrono::seconds(1);
  EXPECT_EQ(world.Schedule().Written(9.9), 0);
  EXPECT_EQ(world.Schedule().Written(10.1), kBytes);
}
TEST(ProtectionSchedule, NothingIsSavedBeforeTheFirstImageCounts) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.Durable(116.9), 0);
  EXPECT_EQ(schedule.Durable(117.1), 102);
}
TEST(ProtectionSchedule, NothingIsPromisedBeforeTheFirstImageCounts) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.MostLost(116.9), 0);
  EXPECT_GT(schedule.MostLost(117.1), 122);
}

// The first one took 15 s, so the second is ordered 122 - 2 * 15 s after it; it counts 6 s later.
TEST(ProtectionSchedule, TheSecondFollowsFromWhatTheFirstHasCost) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.Written(208.9), kBytes);
  EXPECT_NEAR(schedule.Written(209.1), 1.1 * kBytes, 1);
  EXPECT_EQ(schedule.Durable(214.9), 102);
  EXPECT_EQ(schedule.Durable(215.1), 102 + 102);
}
// A whole image every 10,000 s is what the bandwidth allows. The first two are made up for in ten parts.
World WithLittleBandwidth() {
  World world;
  world.policy.checkpoint_bandwidth = 0.001;
  return world;
}
TEST(ProtectionSchedule, TheSecondWaitsForATenthOfTheFirst) {
  const ProtectionSchedule schedule = WithLittleBandwidth().Schedule();
  EXPECT_NEAR(schedule.Written(102 + 999.9), kBytes, 1);
  EXPECT_NEAR(schedule.Written(102 + 1000.1), 1.1 * kBytes, 1);
}
TEST(ProtectionSchedule, TheThirdWaitsForATenthOfBoth) {
  const ProtectionSchedule schedule = WithLittleBandwidth().Schedule();
  // The third takes 2 s, and 6 were expected.
  const double third = 102 + 1000 + 1100, fourth = third + 1100 + 8000 * RowOf(0.1).Share(2) - (6 - 2);
  EXPECT_NEAR(schedule.Written(third - 0.1), 1.1 * kBytes, 1);
  EXPECT_NEAR(schedule.Written(third + 0.1), (1.1 + RowOf(0.1).Share(2)) * kBytes, 1);
  EXPECT_NEAR(schedule.Written(fourth - 0.1), schedule.Written(third + 0.1), 1);
  EXPECT_GT(schedule.Written(fourth + 0.1), schedule.Written(third + 0.1));
}
TEST(ProtectionSchedule, StopsAreMadeUpForAsBytesAre) {
  World world;
  world.policy.checkpoint_stops = 0.001;
  const ProtectionSchedule schedule = world.Schedule();
  const double second = 102 + 500, third = second + 1000, fourth = third + 1800 - (6 - 2);
  EXPECT_NEAR(schedule.Stopped(second), 5, 1e-6);
  EXPECT_NEAR(schedule.Stopped(second + 0.1), 5.1, 1e-6);
  EXPECT_NEAR(schedule.Stopped(third), 10, 1e-6);
  EXPECT_NEAR(schedule.Stopped(third + 0.1), 10.1, 1e-6);
  EXPECT_NEAR(schedule.Stopped(fourth), 11, 1e-6);
  EXPECT_NEAR(schedule.Stopped(fourth + 0.1), 11.1, 1e-6);
}
// That the second comes soon says nothing of those behind it.
TEST(ProtectionSchedule, APromiseCountsWithImagesLikeTheFirst) {
  const ProtectionSchedule schedule = WithLittleBandwidth().Schedule();
  EXPECT_NEAR(schedule.MostLost(200), 10000 + 2 * 15, 1e-6);
}
TEST(ProtectionSchedule, OneThatStandsStillMakesUpForEachBeforeTheNext) {
  World world = WithLittleBandwidth();
  world.p.whole_images = true;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_EQ(schedule.Written(102 + 9999), kBytes);
  EXPECT_EQ(schedule.Written(102 + 10001), 2 * kBytes);
}
TEST(ProtectionSchedule, TheFirstTwoStopTheJobAsCriuDoes) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.Stopped(102), 0);
  EXPECT_EQ(schedule.Stopped(104), 2);
  EXPECT_EQ(schedule.Work(104), 102);
  EXPECT_EQ(schedule.Stopped(209), 5);
  EXPECT_EQ(schedule.Stopped(300), 10);
  EXPECT_EQ(schedule.Stopped(310), 11);
}
TEST(ProtectionSchedule, KnowsWhenAnImageIsUnderWay) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.BusyUntil(101.9), 0);
  EXPECT_NEAR(schedule.BusyUntil(103), 117, 1e-9);
  EXPECT_EQ(schedule.BusyUntil(117.1), 0);
}

// In the end each has the same of the memory, of which the whole takes 10 s.
const double kShare = RowOf(0.1).MeanShare();

// The longest was the first, which took 15 s.
TEST(ProtectionSchedule, IsAsOftenAsThePolicyAsksFor) {
  EXPECT_NEAR(World().Schedule().interval(), 122 - 2 * 15 + (1 + 10 * kShare), 1e-4);
}
TEST(ProtectionSchedule, IsNotAsOftenWhereThereIsNoBandwidthForIt) {
  World world;
  world.policy.checkpoint_bandwidth = 0.01;
  EXPECT_NEAR(world.Schedule().interval(), 1000 * kShare, 1e-3);
}
// Each second one is whole.
TEST(ProtectionSchedule, ImagesHaveWhatIsWrittenAgainAsWell) {
  World world;
  world.p.written_share = 0.3;
  const ProtectionSchedule schedule = world.Schedule();
  const double round = 10 * schedule.interval();
  EXPECT_NEAR(schedule.Written(9000 + round) - schedule.Written(9000), 5 * 1.3 * kBytes, 1);
}
TEST(ProtectionSchedule, OfTheSamePagesImagesHaveNoOthers) {
  World world;
  world.p.same_pages = true;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_NEAR(schedule.interval(), 122 - 2 * 15 + 2, 1e-6);
  EXPECT_NEAR(schedule.Written(9000 + schedule.interval()) - schedule.Written(9000), 0.1 * kBytes, 1);
}
// And not by the first ones, which have less.
TEST(ProtectionSchedule, TheIntervalsOfARoundFollowFromItsImages) {
  World world;
  world.p.written_share = 0.01;
  world.policy.checkpoint_bandwidth = 0.001;
  world.policy.most_lost_work = std::chrono::seconds(1);
  EXPECT_NEAR(world.Schedule().interval(), 10000 * RowOf(0.01).MeanShare(), 2);
}
TEST(ProtectionSchedule, WholeOnesShareNoPages) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_FALSE(schedule.SharesPages(110));
  EXPECT_FALSE(schedule.SharesPages(120));
  EXPECT_TRUE(schedule.SharesPages(220));
}

TEST(ProtectionSchedule, PageFaultsAreSpreadOverTheTimeToTheNextImage) {
  World world;
  world.p.page_fault = 1e-4;
  const double faults = 1e-4 * 0.1 * kBytes / 4096;
  const ProtectionSchedule with = world.Schedule(), without = World().Schedule();
  EXPECT_EQ(with.Work(209), without.Work(209));
  const double round = 10 * with.interval();
  EXPECT_NEAR(without.Work(9000 + round) - without.Work(9000) - (with.Work(9000 + round) - with.Work(9000)),
              10 * faults, 1e-6);
}

TEST(ProtectionSchedule, NoLaterImageStopsTheJobAsCriuDoes) {
  for (double written : {0.01, 0.3}) {
    World world;
    world.p.written_share = written;
    const ProtectionSchedule schedule = world.Schedule();
    const int images = RowOf(written).round();
    const double round = images * schedule.interval();
    EXPECT_NEAR(schedule.Stopped(9000 + round) - schedule.Stopped(9000), images * 1, 1e-6);
  }
}
TEST(ProtectionSchedule, AJobThatWritesNearlyAllIsNotTracked) {
  World world;
  world.p.written_share = 0.8;
  world.p.page_fault = 1;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_NEAR(schedule.Stopped(9000 + schedule.interval()) - schedule.Stopped(9000), 5, 1e-6);
  EXPECT_NEAR(schedule.Work(9000) + schedule.Stopped(9000), 9000, 1e-6);
}

TEST(ProtectionSchedule, JobsOfSeveralNodesRunOnAsThoseOfOneDo) {
  const ProtectionSchedule gang = Gang().Schedule(), one = World().Schedule();
  EXPECT_EQ(gang.interval(), one.interval());
  for (double at : {104.0, 215.1, 9000.0}) {
    EXPECT_EQ(gang.Work(at), one.Work(at));
    EXPECT_EQ(gang.Stopped(at), one.Stopped(at));
    EXPECT_NEAR(gang.Written(at), 2 * one.Written(at), 1);
  }
}

TEST(ProtectionSchedule, WithWholeImagesAJobStandsStillUntilAllIsWritten) {
  const ProtectionSchedule schedule = WholeImages().Schedule();
  EXPECT_EQ(schedule.Work(112), 102);
  EXPECT_EQ(schedule.Durable(111.9), 0);
  EXPECT_EQ(schedule.Durable(112.1), 102);
  EXPECT_EQ(schedule.Stopped(112), 10);
}
TEST(ProtectionSchedule, WholeImagesHaveAllOfTheMemory) {
  const ProtectionSchedule schedule = WholeImages().Schedule();
  EXPECT_NEAR(schedule.Written(9000 + schedule.interval()) - schedule.Written(9000), kBytes, 1);
  EXPECT_FALSE(schedule.SharesPages(9000));
}
TEST(ProtectionSchedule, WholeImagesStopAJobForNoMoreThanThePolicySays) {
  World world = WholeImages();
  world.policy.checkpoint_stops = 0.01;
  EXPECT_NEAR(world.Schedule().interval(), 1000, 1e-6);
}

// Of a job on all nodes, where the tier takes half as much as they can write: it stands still while they do.
TEST(ProtectionSchedule, ImagesHaveTheShareOfTheTierThatThePolicyGivesThem) {
  World world = WholeImages();
  world.job.trace.nodes = 10;
  world.p.shared_bandwidth = 5 * world.p.node_bandwidth;
  world.policy.checkpoint_bandwidth = 0.1;
  world.policy.most_lost_work = std::chrono::seconds(1);
  const ProtectionSchedule schedule = world.Schedule();
  // The first has what is left to all others.
  EXPECT_NEAR(schedule.Stopped(100), 20 / 0.9, 1e-6);
  const double from = 1e5, rounds = 10 * schedule.interval();
  EXPECT_NEAR(schedule.Stopped(from + rounds) - schedule.Stopped(from), 10 * 20 / 0.1, 1e-3);
}
TEST(ProtectionSchedule, ImagesMayBeTakenToHaveAllOfTheTier) {
  World world = WholeImages();
  world.job.trace.nodes = 10;
  world.p.shared_bandwidth = 5 * world.p.node_bandwidth;
  world.p.images_alone = true;
  world.policy.checkpoint_bandwidth = 0.1;
  const ProtectionSchedule schedule = world.Schedule();
  const double from = 1e5, rounds = 10 * schedule.interval();
  EXPECT_NEAR(schedule.Stopped(from + rounds) - schedule.Stopped(from), 10 * 20, 1e-3);
}

// Begun at 122 - 2 * 1 s, it stops the job for 5 s and counts 1 later. To copy it takes 10 s.
TEST(ProtectionSchedule, OnADiskAnImageCountsAsSoonAsItIsThere) {
  const ProtectionSchedule schedule = OnDisks().Schedule();
  EXPECT_EQ(schedule.Durable(125.9), 0);
  EXPECT_EQ(schedule.Durable(126.1), 120);
}
TEST(ProtectionSchedule, OnADiskImagesDoNotTakeSharedBandwidth) {
  World world = OnDisks();
  world.p.shared_bandwidth = kBytes / 1000;
  EXPECT_EQ(world.Schedule().interval(), OnDisks().Schedule().interval());
}
TEST(ProtectionSchedule, OnADiskImagesKeepToItsBandwidth) {
  World world = OnDisks();
  world.p.local_bandwidth = kBytes / 10;
  world.policy.checkpoint_bandwidth = 0.01;
  EXPECT_NEAR(world.Schedule().interval(), 1000 * kShare, 1e-3);
}
TEST(ProtectionSchedule, AnImageOnADiskIsCopiedBehindTheJob) {
  const ProtectionSchedule schedule = OnDisks().Schedule();
  EXPECT_EQ(schedule.Copied(135.9).work, 0);
  EXPECT_EQ(schedule.Copied(136.1).work, 120);
  EXPECT_EQ(schedule.WrittenByCopies(135.9), 0);
  EXPECT_EQ(schedule.WrittenByCopies(136.1), kBytes);
}
TEST(ProtectionSchedule, WhatSharedStorageHasNotIsUncopied) {
  const ProtectionSchedule schedule = OnDisks().Schedule();
  EXPECT_EQ(schedule.Uncopied(125.9), 0);
  EXPECT_EQ(schedule.Uncopied(126.1), kBytes);
  EXPECT_EQ(schedule.Uncopied(136.1), 0);
}
TEST(ProtectionSchedule, InSharedStorageNothingIsCopied) {
  const ProtectionSchedule schedule = World().Schedule();
  EXPECT_EQ(schedule.copy_interval(), 0);
  EXPECT_EQ(schedule.Copied(9000).work, schedule.Durable(9000));
  EXPECT_EQ(schedule.Uncopied(9000), 0);
  EXPECT_EQ(schedule.WrittenByCopies(9000), 0);
}
TEST(ProtectionSchedule, EachImageIsCopiedIfThereIsBandwidthForIt) {
  const ProtectionSchedule schedule = OnDisks().Schedule();
  EXPECT_EQ(schedule.copy_interval(), schedule.interval());
}
TEST(ProtectionSchedule, CopiesTakeNoMoreThanTheirBandwidth) {
  World world = OnDisks();
  world.policy.checkpoint_bandwidth = 0.01;
  const ProtectionSchedule schedule = world.Schedule();
  const double most = 0.01 * world.p.node_bandwidth, from = 1e5, time = 1e6;
  const double written = schedule.WrittenByCopies(from + time) - schedule.WrittenByCopies(from);
  EXPECT_LT(written, most * time);
  EXPECT_GT(written, 0.8 * most * time);
}
TEST(ProtectionSchedule, ByThePolicyNothingIsCopied) {
  World world = OnDisks();
  world.policy.copy_images = false;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_EQ(schedule.Copied(9000).work, 0);
  EXPECT_EQ(schedule.Uncopied(9000), kNever);
  EXPECT_EQ(schedule.WrittenByCopies(9000), 0);
}
// Of a job on all nodes; the first copy has what is left to all others.
TEST(ProtectionSchedule, CopiesHaveTheShareOfTheTierThatThePolicyGivesThem) {
  World world = OnDisks();
  world.job.trace.nodes = 10;
  world.p.shared_bandwidth = 5 * world.p.node_bandwidth;
  world.policy.checkpoint_bandwidth = 0.2;
  const ProtectionSchedule schedule = world.Schedule();
  EXPECT_EQ(schedule.Copied(126 + 20 / 0.8 - 0.1).work, 0);
  EXPECT_EQ(schedule.Copied(126 + 20 / 0.8 + 0.1).work, 120);
}

std::vector<World> Worlds() {
  std::vector<World> worlds(11);
  worlds[1] = WholeImages();
  worlds[2].p.page_fault = 1e-4;
  worlds[3].p.written_share = 0.01;
  worlds[4].policy.checkpoint_bandwidth = 0.01;
  worlds[5].policy.most_lost_work = std::chrono::seconds(1);
  worlds[6] = worlds[7] = OnDisks();
  worlds[7].policy.checkpoint_bandwidth = 0.02;
  worlds[8].p.written_share = 0.3;
  worlds[9].p.written_share = 0.05;
  worlds[10].p.same_pages = true;
  return worlds;
}

TEST(ProtectionSchedule, NoMoreIsEverLostThanItSays) {
  for (const World& world : Worlds()) {
    const ProtectionSchedule schedule = world.Schedule();
    for (double at = 150; at < 8000; at += 0.25)
      ASSERT_LE(schedule.Work(at) - schedule.Durable(at), schedule.MostLost(at));
  }
}
TEST(ProtectionSchedule, WhatIsCopiedIsOnTheDisksAsWell) {
  for (const World& world : Worlds()) {
    const ProtectionSchedule schedule = world.Schedule();
    for (double at = 0; at < 8000; at += 0.25) {
      // But for rounding, as below.
      ASSERT_LE(schedule.Copied(at).work, schedule.Durable(at) + 1e-9);
      ASSERT_EQ(schedule.Uncopied(at) == 0, schedule.Copied(at).work > schedule.Durable(at) - 1e-9);
    }
  }
}
TEST(ProtectionSchedule, TimeForWorkIsWhenItIsDone) {
  for (const World& world : Worlds()) {
    const ProtectionSchedule schedule = world.Schedule();
    for (double work = 0; work < 8000; work += 0.25) {
      const double at = schedule.TimeFor(work);
      ASSERT_NEAR(schedule.Work(at), work, 1e-6);
      ASSERT_LT(schedule.Work(at - 1e-3), work);
    }
  }
}
TEST(ProtectionSchedule, NothingIsUndoneAsTimePasses) {
  for (const World& world : Worlds()) {
    const ProtectionSchedule schedule = world.Schedule();
    for (double at = 0.25; at < 8000; at += 0.25) {
      const double before = at - 0.25;
      ASSERT_GE(schedule.Work(at), schedule.Work(before));
      // But for rounding: whole rounds are taken off and added again.
      ASSERT_GE(schedule.Durable(at), schedule.Durable(before) - 1e-9);
      ASSERT_GE(schedule.Written(at), schedule.Written(before));
      ASSERT_GE(schedule.Copied(at).work, schedule.Copied(before).work - 1e-9);
      ASSERT_GE(schedule.WrittenByCopies(at), schedule.WrittenByCopies(before));
      ASSERT_NEAR(schedule.Stopped(at), schedule.Stopped(before) + 0.125, 0.1251);
    }
  }
}

}  // namespace
}  // namespace siding::sim
