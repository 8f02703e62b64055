#include "agent/memory/private_memory.h"

#include <unistd.h>

#include "gmock/gmock.h"

namespace siding {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PrivateMemoryTest, IsWhatHasNoFileAndIsNotTheKernels) {
  const ProcessMaps maps = ParseMaps(
      "55d0c0000000-55d0c0001000 r-xp 00000000 fe:00 1234                       /usr/bin/job\n"
      "55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "7f0000001000-7f0000002000 rw-s 00000000 00:01 77                         /dev/zero (deleted)\n"
      "7f0000002000-7f0000003000 ---p 00000000 00:00 0 \n"
      "7fff00000000-7fff00021000 rw-p 00000000 00:00 0                          [stack]\n"
      "7fff00030000-7fff00034000 r--p 00000000 00:00 0                          [vvar]\n"
      "7fff00036000-7fff00038000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  EXPECT_THAT(
      maps.areas,
      ElementsAre(MemoryArea{0x55d0c1000000, 0x55d0c1021000}, MemoryArea{0x7f0000000000, 0x7f0000001000},
                  MemoryArea{0x7f0000002000, 0x7f0000003000}, MemoryArea{0x7fff00000000, 0x7fff00021000}));
  EXPECT_FALSE(maps.has_ring);
}

TEST(PrivateMemoryTest, ARingForAsynchronousInputIsSeen) {
  EXPECT_TRUE(
      ParseMaps("7f0000001000-7f0000002000 rw-s 00000000 00:0f 77                         /[aio] (deleted)\n")
          .has_ring);
  EXPECT_TRUE(
      ParseMaps("7f0000001000-7f0000002000 rw-s 00000000 00:0f 77                  anon_inode:[io_uring]\n")
          .has_ring);
}

TEST(PrivateMemoryTest, WhatIsNotUnderstoodIsLeftOut) {
  EXPECT_THAT(ParseMaps("\nnothing\n7f00-\n7f0000001000-7f0000000000 rw-p 00000000 00:00 0\n").areas,
              IsEmpty());
}

TEST(PrivateMemoryTest, AProcessesOwnStackIsInIt) {
  const char here = 0;
  const auto at = reinterpret_cast<uint64_t>(&here);
  EXPECT_THAT(
      ReadMaps(getpid())->areas,
      Contains(::testing::Truly([&](const MemoryArea& area) { return area.begin <= at && at < area.end; })));
}

}  // namespace
}  // namespace siding
