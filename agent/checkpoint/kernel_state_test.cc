#include "agent/checkpoint/kernel_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KernelState, AProgramInMemoryHasNoFile) {
  EXPECT_THAT(WhyNotDumpableProgram("/memfd:prog (deleted)"), HasSubstr("runs from memory (memfd)"));
  EXPECT_EQ(WhyNotDumpableProgram("/usr/bin/python3"), "");
  EXPECT_EQ(WhyNotDumpableProgram("/tmp/prog (deleted)"), "");
}

TEST(KernelState, FoldersOfProcessesAreNotOpenedAgain) {
  EXPECT_EQ(WhyNotDumpableProcFile("/proc/17"), "has the folder /proc/17 open, which cannot be opened again");
  EXPECT_NE(WhyNotDumpableProcFile("/proc/17 (deleted)"), "");
  for (const char* fine : {"/proc", "/proc/net/tcp", "/proc/17/stat", "/proc/17/fd", "/proc/17/task",
                           "/procs/17", "/data/proc/17", "socket:[17]", ""})
    EXPECT_EQ(WhyNotDumpableProcFile(fine), "") << fine;
}

TEST(KernelState, FilesOfThreadsAreNotOpenedAgainButThoseOfTheFirstOneAre) {
  EXPECT_THAT(WhyNotDumpableProcFile("/proc/17/task/18/stat"), HasSubstr("of a thread"));
  EXPECT_THAT(WhyNotDumpableProcFile("/proc/17/task/18"), HasSubstr("of a thread"));
  EXPECT_EQ(WhyNotDumpableProcFile("/proc/17/task/17/stat"), "");
}

TEST(KernelState, HalfAVdsoIsNotFoundAgain) {
  const std::string heap = "7f00-7f01 rw-p 00000000 00:00 0 [heap]\n";
  const std::string vvar = "7f02-7f03 r--p 00000000 00:00 0 [vvar]\n";
  const std::string vdso = "7f04-7f05 r-xp 00000000 00:00 0 [vdso]\n";
  EXPECT_NE(WhyNotDumpableMaps(heap + vvar), "");
  EXPECT_EQ(WhyNotDumpableMaps(heap + vvar + vdso), "");
  EXPECT_EQ(WhyNotDumpableMaps(heap + vdso), "");
  EXPECT_EQ(WhyNotDumpableMaps(heap), "");
}

TEST(KernelState, WhoKeepsAnotherUserOrGroupMayNotBeReadWithoutCapSysResource) {
  const std::string users = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n";
  const std::string groups = "Gid:\t1000\t1000\t1000\t1000\n";
  EXPECT_EQ(WhyNotDumpableOwner(users + groups, {1000, 1000}), "");
  EXPECT_THAT(WhyNotDumpableOwner(users + "Gid:\t1000\t1000\t101\t1000\n", {1000, 1000}),
              HasSubstr("has the group 101, as programs with setgid do"));
  EXPECT_THAT(WhyNotDumpableOwner("Uid:\t1000\t0\t0\t0\n" + groups, {1000, 1000}),
              HasSubstr("has the user 0, as programs with setuid do"));
  EXPECT_THAT(WhyNotDumpableOwner(users + groups, {0, 0}), HasSubstr("has the user 1000"));
  EXPECT_EQ(WhyNotDumpableOwner(users + "Gid:\t1000\t1000\t1000\t101\n", {1000, 1000}), "")
      << "with which it opens files";
  EXPECT_EQ(WhyNotDumpableOwner("", {1000, 1000}), "") << "it is gone";
}

TEST(KernelState, ATerminalWhoseForegroundGroupHasEndedIsFound) {
  const std::string init = "1 (siding-init) S 0 1 1 0 -1 4194560";
  const std::string shell = "3 (a) shell) S 1 3 3 34816 7 4194560";  // pid 3, terminal 34816, foreground 7
  EXPECT_EQ(FindForegroundEnded({init, shell}), 1u);
  EXPECT_EQ(FindForegroundEnded({init, shell, "9 (sort) S 3 7 3 34816 7 4194560"}), 3u) << "its group lives";
  EXPECT_EQ(FindForegroundEnded({init, shell, "9 (sort) S 3 7 4 0 -1 4194560"}), 1u) << "of another session";
  EXPECT_EQ(FindForegroundEnded({init, "3 (sh) S 1 3 3 34816 3 4194560"}), 2u);
  EXPECT_EQ(FindForegroundEnded({"", init}), 2u) << "one is gone";
  EXPECT_EQ(FindForegroundEnded({}), 0u);
}

TEST(KernelState, PersonalityIsThatOfLinuxWithOrWithoutRandomAddresses) {
  EXPECT_EQ(WhyNotDumpablePersonality("00000000\n", CriuKind::kAny), "");
  EXPECT_EQ(WhyNotDumpablePersonality("00040000\n", CriuKind::kAny), "");
  EXPECT_THAT(WhyNotDumpablePersonality("00040008\n", CriuKind::kAny), HasSubstr("00040008"));
  EXPECT_EQ(WhyNotDumpablePersonality("00040008\n", CriuKind::kOurs), "");
  EXPECT_THAT(WhyNotDumpablePersonality("00440000\n", CriuKind::kOurs), HasSubstr("00440000"));
}

TEST(KernelState, AnEventfdThatCountsAsASemaphoreWouldBeAnother) {
  EXPECT_NE(WhyNotDumpableEventfd("flags:\t02\neventfd-count: 3\neventfd-id: 4\neventfd-semaphore: 1\n",
                                  CriuKind::kAny),
            "");
  EXPECT_EQ(WhyNotDumpableEventfd("flags:\t02\neventfd-count: 3\neventfd-id: 4\neventfd-semaphore: 1\n",
                                  CriuKind::kOurs),
            "");
  EXPECT_EQ(WhyNotDumpableEventfd("flags:\t02\neventfd-count: 3\neventfd-id: 4\neventfd-semaphore: 0\n",
                                  CriuKind::kAny),
            "");
  EXPECT_EQ(WhyNotDumpableEventfd("flags:\t02\neventfd-count: 3\n", CriuKind::kAny), "") << "an older kernel";
}

TEST(KernelState, PipesOfPacketsAreNotDumped) {
  EXPECT_NE(WhyNotDumpablePipe("pos:\t0\nflags:\t040001\nmnt_id:\t15\n"), "");
  EXPECT_EQ(WhyNotDumpablePipe("pos:\t0\nflags:\t02001\nmnt_id:\t15\n"), "");
  EXPECT_EQ(WhyNotDumpablePipe(""), "");
}

TEST(KernelState, SocketsAreOfKindsThatAreRestored) {
  for (const char* fine : {"TCP", "TCPv6", "UDP", "UNIX", "UNIX-STREAM", "NETLINK", ""})
    EXPECT_EQ(WhyNotDumpableSocket(fine), "") << fine;
  EXPECT_EQ(WhyNotDumpableSocket("AF_VSOCK"), "has a socket of the kind AF_VSOCK");
  EXPECT_THAT(WhyNotDumpableSocket("MPTCPv6"), HasSubstr("GODEBUG=multipathtcp=0"));
}

TEST(KernelState, FilesOfTheOwnCgroupAreOthersAfterwards) {
  const std::string cgroups = "4:memory:/siding/n1/7.1.0\n1:cpu:/\n0::/jobs/7.1.0\n";
  EXPECT_NE(WhyNotDumpableCgroupFile("/sys/fs/cgroup/memory/siding/n1/7.1.0/memory.stat", cgroups), "");
  EXPECT_NE(WhyNotDumpableCgroupFile("/sys/fs/cgroup/jobs/7.1.0", cgroups), "");
  EXPECT_EQ(WhyNotDumpableCgroupFile("/sys/fs/cgroup/memory/siding/n1/7.1.01/memory.stat", cgroups), "");
  EXPECT_EQ(WhyNotDumpableCgroupFile("/sys/fs/cgroup/cpu/cpu.stat", cgroups), "");
  EXPECT_EQ(WhyNotDumpableCgroupFile("/data/siding/n1/7.1.0/x", cgroups), "");
}

constexpr char kSockets[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "  12: 0100007F:1F90 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 11 2 0 0\n"
    "  13: 0100007F:1F91 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 12 2 0 0\n"
    "  14: 0100007F:1F92 00000000:0000 0A 00000000:00000001 00:00000000 00000000     0        0 13 2 0 0\n"
    "  15: 0100007F:1F93 0100007F:1F92 01 00000000:00000001 00:00000000 00000000     0        0 14 2 0 0\n"
    "  16: 0100007F:1F93 0100007F";

TEST(KernelState, WhatDatagramSocketsHaveIsUnread) {
  EXPECT_THAT(SocketsWithUnread(kSockets, false), ElementsAre(11, 13, 14));
}

// What has come over a connection is in the image.
TEST(KernelState, OfTcpOnlyConnectionsThatAreNotAcceptedAreMissed) {
  EXPECT_THAT(SocketsWithUnread(kSockets, true), ElementsAre(13));
}

TEST(KernelState, NoTextNoSockets) {
  EXPECT_THAT(SocketsWithUnread("", false), IsEmpty());
  EXPECT_THAT(SocketsWithUnread("x\ny\n", true), IsEmpty());
}

TEST(KernelState, GroupsOfOtherThanTheKernelAreFound) {
  const auto groups = ParseIgmp(
      "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n"
      "1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n"
      "4\teth0      :     2      V3\n\t\t\t\t030201EF     1 0:00000000\t\t0\n"
      "\t\t\t\t010000E0     1 0:00000000\t\t0\n");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].interface, 4u);
  EXPECT_EQ(NameOf(groups[0]), "239.1.2.3");
}

TEST(KernelState, SoAreThoseOfIpv6) {
  const auto groups = ParseIgmp6(
      "1    lo              ff020000000000000000000000001234     1 0000000C 0\n"
      "1    lo              ff020000000000000000000000000001     1 0000000C 0\n"
      "4    eth0            ff0200000000000000000001ff000002     1 00000004 0\n"
      "4    eth0            ff02zz00000000000000000000001234     1 00000004 0\n4 eth0");
  ASSERT_EQ(groups.size(), 1u);
  EXPECT_EQ(groups[0].interface, 1u);
  EXPECT_EQ(NameOf(groups[0]), "ff02::1234");
}

TEST(KernelState, AShellWithJobsThatIsNotTheFirstOfItsSession) {
  constexpr char kIgnores[] = "Name:\tbash\nSigIgn:\t0000000000384004\n",
                 kDoes[] = "SigIgn:\t0000000000000000\n";
  EXPECT_NE(WhyNotDumpableShell(9, "9 (a) b) S 7 9 7 34822 9 4194304", kIgnores), "");
  EXPECT_EQ(WhyNotDumpableShell(9, "9 (a) b) S 7 9 9 34822 9 4194304", kIgnores), "") << "it is the first";
  EXPECT_EQ(WhyNotDumpableShell(9, "9 (a) b) S 7 7 7 34822 9 4194304", kIgnores), "") << "in another's group";
  EXPECT_EQ(WhyNotDumpableShell(9, "9 (a) b) S 7 9 7 0 -1 4194304", kIgnores), "") << "without a terminal";
  EXPECT_EQ(WhyNotDumpableShell(9, "9 (a) b) S 7 9 7 34822 9 4194304", kDoes), "") << "it is a job";
  EXPECT_EQ(WhyNotDumpableShell(9, "", ""), "") << "it has ended";
}

}  // namespace
}  // namespace siding
