#include "spank/options.h"

#include <signal.h>

#include "common/units.h"
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

TEST(Options, DurationsAreReadAsEverywhereElse) {
  for (const char* text :
       {"90s", "1m30s", "2h",   "250ms", "1d",  "1.5h", "7us",  "3min",  ".5s",    "",    "90",
        "s",   "1x",    "1e3s", "-1s",   "+1s", "1s ",  "0x1s", "1..5s", "36501d", "inf", "1h-3m"}) {
    int64_t ours = -1;
    const auto theirs = siding::ParseDuration(text);
    EXPECT_EQ(ParseDuration(text, ours), theirs.ok()) << text;
    if (theirs.ok()) {
      EXPECT_EQ(ours, theirs->count()) << text;
    }
  }
}

TEST(Options, TimesAreReadAsEverywhereElse) {
  for (const char* text : {"2026-05-01T12:00:00Z", "2026-05-01T12:00:00.25Z", "2026-05-01T12:00:00+02:00",
                           "2026-05-01T12:00:00-11:30", "2026-05-01", "2026-05-01T12:00:00",
                           "2026-02-30T12:00:00Z", "2026-05-01T25:00:00Z", "tomorrow", "",
                           "2026-05-01T12:00:00Zulu", "2026-05-01T12:00:00.Z", "2026-05-01T12:00:00+2"}) {
    int64_t ours = -1;
    const auto theirs = siding::ParseTime(text, Time());
    EXPECT_EQ(ParseTime(text, ours), theirs.ok()) << text;
    if (theirs.ok()) {
      EXPECT_EQ(ours, ToMicros(*theirs)) << text;
    }
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

TEST(Options, TheLastDeadlineCounts) {
  Options options;
  EXPECT_EQ(Set(options, Flag::kStartBy, "2026-05-01T12:00:00Z"), nullptr);
  EXPECT_EQ(Set(options, Flag::kStartBy, "+60s"), nullptr);
  EXPECT_EQ(options.start_by_us, 0);
  EXPECT_EQ(options.start_within_us, 60'000'000);
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
