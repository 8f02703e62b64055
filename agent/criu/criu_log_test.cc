#include "absl/strings/str_cat.h"
#include "agent/criu/criu.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(CriuLog, LastErrorsWithoutHarmlessAndSummingUpLines) {
  EXPECT_EQ(WhyCriuFailed("(00.000) Error (criu/util.c:1): rlimit: Can't setup RLIMIT_NOFILE for self\n"
                          "(00.010) Warn  (criu/x.c:3): something\n"
                          "(00.020) Error (criu/files.c:2): Can't dump it\n"
                          "(00.021) Error (criu/cr-dump.c:9): Dumping FAILED.\n")
                .why,
            "criu: Can't dump it");
}

TEST(CriuLog, AtMostTheLastTwo) {
  EXPECT_EQ(WhyCriuFailed("Error (a.c:1): one\nError (a.c:1): two\nError (a.c:1): three\n").why,
            "criu: two; three");
}

TEST(CriuLog, WhatFailedAndNotWhatCameOfIt) {
  EXPECT_EQ(WhyCriuFailed("(00.1) 2: Error (criu/files-reg.c:1): Can't open file x: Permission denied\n"
                          "(00.1) 2: Error (criu/files.c:2): Unable to open fd=3 id=0x9\n"
                          "(00.2) Error (criu/cr-restore.c:3): 2 exited, status=1\n")
                .why,
            "criu: Can't open file x: Permission denied");
}

TEST(CriuLog, WhatIsAroundIsBlamedOrNot) {
  EXPECT_FALSE(WhyCriuFailed("Error (a.c:1): Can't restore 0x7f mapping with 0xfffffffffffffff3\n").around);
  EXPECT_FALSE(WhyCriuFailed("Error (a.c:1): Can't set the vDSO: Invalid argument\n").around);
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): File x has bad size 3 (expect 4)\n").around);
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): Can't mmap: Cannot allocate memory\n").around);
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): Can't bind: Address already in use\n").around);
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): 12 killed by signal 9: Killed\n").around);
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): tty: Unable to open /dev/ptmx with specified index 3\n").around);
}

TEST(CriuLog, AFileThatIsNotThereOrMayNotBeOpenedIsToldFromWhatIsAround) {
  for (const char* why : {"Permission denied", "No such file or directory"}) {
    const CriuRefusal refusal = WhyCriuFailed(absl::StrCat("Error (a.c:1): Can't open file x: ", why, "\n"));
    EXPECT_TRUE(refusal.file);
    EXPECT_FALSE(refusal.around);
  }
  EXPECT_FALSE(WhyCriuFailed("Error (a.c:1): Can't mmap: Cannot allocate memory\n").file);
}

TEST(CriuLog, ThatAPartOfCriuHasEndedBlamesNoFile) {
  EXPECT_FALSE(WhyCriuFailed(
                   "Error (a.c:1): no\nError (criu/cgroup.c:9): cg: cgroupd: recv req error: No such file or "
                   "directory\n")
                   .file);
}

TEST(CriuLog, ItIsBlamedByWhatCriuSaidBeforeTheLastWordToo) {
  EXPECT_TRUE(WhyCriuFailed("Error (a.c:1): Can't write: No space left on device\n"
                            "Error (a.c:1): one\nError (a.c:1): two\nError (a.c:1): three\n")
                  .around);
}

TEST(CriuLog, ALackOfRoomIsSeen) {
  EXPECT_TRUE(SaysFull("criu: Can't write: No space left on device"));
  EXPECT_TRUE(SaysFull("criu: Can't write: Disk quota exceeded"));
  EXPECT_FALSE(SaysFull("criu: Can't write: Input/output error"));
}

TEST(CriuLog, NothingWrong) { EXPECT_EQ(WhyCriuFailed("(00.1) all well\n").why, ""); }

TEST(CriuLog, WhatIsKnownIsSaidInOtherWords) {
  const CriuRefusal refusal = WhyCriuFailed(
      "(00.1) Error (criu/sk-unix.c:874): External socket is used. Consider using --ext-unix-sk option.\n"
      "(00.1) Error (criu/cr-dump.c:1545): Dump files (pid: 7) failed with -1\n");
  EXPECT_THAT(refusal.why, HasSubstr("connected by a Unix socket to a program outside of the job"));
  EXPECT_FALSE(refusal.passes);
}

TEST(CriuLog, OptionsOfCriuAreNotAdvised) {
  EXPECT_EQ(WhyCriuFailed("Error (a.c:1): no\nError (a.c:1): Consider using --some option.\n").why,
            "criu: no");
}

TEST(CriuLog, OfTwoThatAreKnownTheLastStoppedIt) {
  EXPECT_THAT(WhyCriuFailed("Error (a.c:1): Unseizable non-zombie 7 found, state S, err -1/10\n"
                            "Error (a.c:1): In-flight connection (l) for 1a2b\n")
                  .why,
              HasSubstr("waits to be accepted"));
}

struct Line {
  const char* said;
  const char* why;
};
class CriuLine : public ::testing::TestWithParam<Line> {};

TEST_P(CriuLine, IsUnderstood) {
  const auto refusal = KnownRefusal(GetParam().said);
  ASSERT_TRUE(refusal) << GetParam().said;
  EXPECT_THAT(refusal->why, HasSubstr(GetParam().why));
  EXPECT_THAT(refusal->why, Not(HasSubstr("--")));
}

// As CRIU 4.2.1 writes them.
INSTANTIATE_TEST_SUITE_P(
    Lines, CriuLine,
    ::testing::Values(
        Line{"inet: In-flight connection (l) for 1a2b", "waits to be accepted"},
        Line{"Unknown inet socket 1a2b state 3", "is just being made or closed"},
        Line{"Connected TCP socket, consider using --tcp-established option.", "leads out of the job"},
        Line{"Unsupported proto 262 for socket 1a2b", "MPTCP"},
        Line{"Unsupported proto 132 for socket 1a2b", "a socket of protocol 132,"},
        Line{"Can't dump 5 inet socket 1a2b. Only stream, dgram and raw are supported.", "of type 5,"},
        Line{"Can't dump half of stream unix connection. name: (null); peer name: (null)",
             "a program outside of the job"},
        Line{"unix: Can't dump half of stream unix connection. name: (null); peer name: /run/x.sock",
             "outside of the job (/run/x.sock)"},
        Line{"unix: Dangling connection 77", "whose other end"},
        Line{"unix: Found a closed in-flight socket to 0x12", "Unix sockets waits to be accepted"},
        Line{"Unsupported type (4) on socket 77.", "Unix socket of type 4,"},
        Line{"netlink: The socket has data to read", "messages that it has not read"},
        Line{"Sockets (family 16 proto 12) are not collected", "a socket of family 16, protocol 12,"},
        Line{"BUG! Unknown socket collected (family 38)", "a socket of family 38,"},
        Line{"Can't dump file 5 of that type [600] (unknown /dev/fuse)",
             "cannot be saved (unknown /dev/fuse)"},
        Line{"Can't dump ghost file /tmp/x of 300000000 size, increase limit",
             "/tmp/x open, which was removed and has 300000000 bytes"},
        Line{"Can't create link remap for /tmp/x. Use link-remap option.",
             "has /tmp/x open, which was removed"},
        Line{"Can't link remap to /tmp/x: Operation not permitted", "another name (a hard link) elsewhere"},
        Line{"Unaccessible path opened 8:1, need 8:2", "another file has its name now"},
        Line{"Can't lookup mount=9 for fd=5 path=/queue", "has /queue open, which is in no file system"},
        Line{"Open files on overmounted mounts are not supported yet; mount=9 fd=5 path=/mnt/x",
             "has /mnt/x open, and something else has been mounted there"},
        Line{"fsnotify: \tCan't dump that handle", "watches a file (inotify) that was removed"},
        Line{"Escaped/closed fd descriptor 5 on pid 7", "watches a file (epoll) that it has closed"},
        Line{"pidfd pid 7 is not a part of process tree..", "a pidfd of a process outside"},
        Line{"tty: Found dangling tty with sid 1 pgid 2 (pts) on peer fd 0.", "uses a terminal from outside"},
        Line{"Task 7 with SysVIPC shmem map @7f0000000000 doesn't live in IPC ns",
             "of another IPC namespace"},
        Line{"Sysv shmem 7 with a hole not supported", "System V shared memory"},
        Line{"PID 7 has uprobes vma. Consider using --allow-uprobes.", "uprobes"},
        Line{"Can't dump nested user namespace for 7", "a namespace of its own (user)"},
        Line{"Unseizable non-zombie 7 found, state t, err -1/10", "a debugger may trace it"},
        Line{"Timeout reached. Try to interrupt: 0", "could not be stopped in 10 s"},
        Line{"Zombie thread not supported", "was just ending"},
        Line{"Can't get rlimit 0: Operation not permitted", "CAP_SYS_RESOURCE"},
        Line{"Can't bind inet socket (id 7): Address already in use", "in use on this node"}));

TEST(CriuRefusals, WhatPassesByItself) {
  EXPECT_TRUE(KnownRefusal("In-flight connection (l) for 1a2b")->passes);
  EXPECT_FALSE(KnownRefusal("Dangling connection 77")->passes);
}

TEST(CriuRefusals, OfOtherFormsAreNotKnown) {
  EXPECT_FALSE(KnownRefusal("The socket has data to read and more"));
  EXPECT_FALSE(KnownRefusal("Sysv shmem 7"));
  EXPECT_FALSE(KnownRefusal(""));
}

}  // namespace
}  // namespace siding
