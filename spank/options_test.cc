#include "spank/options.h"

#include <signal.h>

#include "gtest/gtest.h"

namespace siding::spank {
namespace {

TEST(Options, PreemptibleWithoutAValueLeavesTheMethodsToThePolicy) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kPreemptible, nullptr), nullptr);
  EXPECT_TRUE(options.preemptible);
  EXPECT_EQ(options.methods, 0u);
}

TEST(Options, MethodsAreAList) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kPreemptible, "kill,checkpoint"), nullptr);
  EXPECT_EQ(options.methods, kCheckpoint | kKill);
}

TEST(Options, WrongMethodsAreRefused) {
  for (const char* text : {"", "checkpont", "checkpoint,", ",kill", "kill,kill", "kill checkpoint"}) {
    Options options;
    EXPECT_NE(Set(options, Flag::kPreemptible, text), nullptr) << text;
    EXPECT_FALSE(options.preemptible) << text;
  }
}

TEST(Options, SignalsHaveNamesAndNumbers) {
  EXPECT_EQ(ParseSignal("USR1", 4), SIGUSR1);
  EXPECT_EQ(ParseSignal("SIGTERM", 7), SIGTERM);
  EXPECT_EQ(ParseSignal("12", 2), 12);
}

TEST(Options, SignalsThatNobodyCanCatchAreRefused) {
  for (const char* text : {"KILL", "9", "19", "SIG", "0", "65", "100", "usr1", ""}) {
    Options options;
    EXPECT_NE(Set(options, Flag::kCheckpointSignal, text), nullptr) << text;
  }
}

TEST(Options, ASignalMayComeWithAGrace) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kCheckpointSignal, "USR1@2m"), nullptr);
  EXPECT_EQ(options.checkpoint_signal, SIGUSR1);
  EXPECT_EQ(options.signal_grace_us, 120'000'000);
  EXPECT_NE(Set(options, Flag::kCheckpointSignal, "USR1@"), nullptr);
  EXPECT_NE(Set(options, Flag::kCheckpointSignal, "USR1@soon"), nullptr);
}

TEST(Options, ACheckpointIntervalIsASecondAtLeast) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kCheckpointInterval, "1s"), nullptr);
  EXPECT_STREQ(Set(options, Flag::kCheckpointInterval, "1ms"),
               "expected a duration of 1s or more with its unit, such as 30m");
}

TEST(Options, TheLastDeadlineCounts) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kStartBy, "2026-05-01T12:00:00Z"), nullptr);
  EXPECT_EQ(Set(options, Flag::kStartBy, "+60s"), nullptr);
  EXPECT_EQ(options.start_by_us, 0);
  EXPECT_EQ(options.start_within_us, 60'000'000);
}

TEST(Options, ATimeHasDigitsWhereOneHasThem) {
  for (const char* text :
       {"2026-05-01T12:00:-0Z", "2026-05-01T12: 0:00Z", "2026-05-1T12:00:00Z", "2026-05-01T12:00", ""}) {
    Options options;
    EXPECT_NE(Set(options, Flag::kStartBy, text), nullptr) << text;
  }
}

TEST(Options, AnOffsetFromUtcIsTwoNumbers) {
  for (const char* text :
       {"2026-05-01T12:00:00+02:-0", "2026-05-01T12:00:00+2:000", "2026-05-01T12:00:00+02:60"}) {
    Options options;
    EXPECT_NE(Set(options, Flag::kStartBy, text), nullptr) << text;
  }
}

TEST(Options, ADeadlineOfNothingIsRefused) {
  for (const char* text : {"+0s", "1970-01-01T00:00:00Z", "1969-12-31T12:00:00Z"}) {
    Options options;
    EXPECT_NE(Set(options, Flag::kStartBy, text), nullptr) << text;
  }
}

TEST(Options, FilesAreExactOrAppend) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kFiles, "append"), nullptr);
  EXPECT_TRUE(options.append_files);
  EXPECT_STREQ(Set(options, Flag::kFiles, "any"), "expected exact or append");
  EXPECT_NE(Contradiction(options), nullptr) << "it is not preemptible";
  EXPECT_EQ(Set(options, Flag::kFiles, "exact"), nullptr);
  EXPECT_FALSE(options.append_files);
}

TEST(Options, ConnectionsAreKeptOfJobsThatAreCheckpointed) {
  Options options;
  EXPECT_STREQ(Set(options, Flag::kConnections, "all"), "expected keep or as-is");
  EXPECT_EQ(Set(options, Flag::kConnections, "keep"), nullptr);
  EXPECT_TRUE(options.keep_connections);
  EXPECT_NE(Contradiction(options), nullptr) << "it is not preemptible";
  Set(options, Flag::kPreemptible, "suspend");
  EXPECT_NE(Contradiction(options), nullptr) << "it is never saved";
  Set(options, Flag::kPreemptible, nullptr);
  EXPECT_EQ(Contradiction(options), nullptr);
  EXPECT_EQ(Set(options, Flag::kConnections, "as-is"), nullptr);
  EXPECT_FALSE(options.keep_connections);
}

TEST(Options, CountsAreWholeNumbers) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kMaxPreemptions, "3"), nullptr);
  EXPECT_EQ(options.max_preemptions, 3);
  for (const char* text : {"", "-1", " 3", "3x", "1000001", "99999999999999999999"}) {
    EXPECT_NE(Set(options, Flag::kMaxPreemptions, text), nullptr) << text;
  }
  EXPECT_EQ(options.max_preemptions, 3);
}

TEST(Options, AnOnDemandJobIsNotPreemptible) {
  Options options;
  options.start_within_us = 1;
  EXPECT_EQ(Contradiction(options), nullptr);
  options.preemptible = true;
  EXPECT_NE(Contradiction(options), nullptr);
}

TEST(Options, WhatIsSaidOfPreemptionsNeedsAPreemptibleJob) {
  Options options;
  options.notice_us = 1;
  EXPECT_NE(Contradiction(options), nullptr);
  options.preemptible = true;
  EXPECT_EQ(Contradiction(options), nullptr);
}

TEST(Options, NoticeIsGivenBeforeTheProgramIsStopped) {
  Options options;
  options.preemptible = true;
  options.notice_us = 1;
  options.checkpoint_signal = SIGUSR1;
  options.methods = kApp | kKill;
  EXPECT_NE(Contradiction(options), nullptr);
  options.methods = kApp | kSuspend;
  EXPECT_EQ(Contradiction(options), nullptr);
}

TEST(Options, NoticeIsOfADayAtMost) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kNotice, "24h"), nullptr);
  EXPECT_NE(Set(options, Flag::kNotice, "25h"), nullptr);
  EXPECT_EQ(options.notice_us, kMostNoticeUs);
}

TEST(Options, CollectivesAreDrainableOrLeftAlone) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kGpuCollectives, "drainable"), nullptr);
  EXPECT_EQ(options.gpu_collectives, Collectives::kDrainable);
  EXPECT_EQ(Set(options, Flag::kGpuCollectives, "as-is"), nullptr);
  EXPECT_EQ(options.gpu_collectives, Collectives::kAsIs);
  EXPECT_NE(Set(options, Flag::kGpuCollectives, "drain"), nullptr);
}

TEST(Options, IoUringIsAllowedOrNot) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kAllowIoUring, "yes"), nullptr);
  EXPECT_TRUE(options.allow_io_uring);
  EXPECT_EQ(Set(options, Flag::kAllowIoUring, "no"), nullptr);
  EXPECT_FALSE(options.allow_io_uring);
  EXPECT_NE(Set(options, Flag::kAllowIoUring, ""), nullptr);
}

TEST(Options, AProgramThatSavesItselfMustBeTold) {
  Options options;
  options.preemptible = true;
  options.methods = kApp;
  EXPECT_NE(Contradiction(options), nullptr);
  options.checkpoint_signal = SIGUSR1;
  EXPECT_EQ(Contradiction(options), nullptr);
}

TEST(Options, MethodsAreWrittenAsTheyAreRead) {
  char text[64];
  FormatMethods(kSuspend | kCheckpoint | kMigrate | kApp | kKill, text);
  EXPECT_STREQ(text, "suspend,checkpoint,migrate,app,kill");
  FormatMethods(0, text);
  EXPECT_STREQ(text, "");
}

}  // namespace
}  // namespace siding::spank
