#include "agent/criu/criu.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(CriuLog, LastErrorsWithoutHarmlessAndSummingUpLines) {
  EXPECT_EQ(LastCriuErrors("(00.000) Error (criu/util.c:1): rlimit: Can't setup RLIMIT_NOFILE for self\n"
                           "(00.010) Warn  (criu/x.c:3): something\n"
                           "(00.020) Error (criu/files.c:2): Can't dump file 5\n"
                           "(00.021) Error (criu/cr-dump.c:9): Dumping FAILED.\n"),
            "Can't dump file 5");
}

TEST(CriuLog, AtMostTheLastTwo) {
  EXPECT_EQ(LastCriuErrors("Error (a.c:1): one\nError (a.c:1): two\nError (a.c:1): three\n"), "two; three");
}

TEST(CriuLog, WhatFailedAndNotWhatCameOfIt) {
  EXPECT_EQ(LastCriuErrors("(00.1) 2: Error (criu/files-reg.c:1): Can't open file x: Permission denied\n"
                           "(00.1) 2: Error (criu/files.c:2): Unable to open fd=3 id=0x9\n"
                           "(00.2) Error (criu/cr-restore.c:3): 2 exited, status=1\n"),
            "Can't open file x: Permission denied");
}

TEST(CriuLog, NothingWrong) { EXPECT_EQ(LastCriuErrors("(00.1) all well\n"), ""); }

}  // namespace
}  // namespace siding
