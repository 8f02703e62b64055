#include "agent/memory/known_areas.h"

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "agent/memory/pagemap.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr char kHeap[] = "55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                          [heap]\n";
constexpr char kArea[] = "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";

TEST(KnownAreasTest, OfSmapsTheMappingsAndTheirFlagsAreKept) {
  EXPECT_EQ(
      AreasOf(absl::StrCat(kHeap, "Size:                132 kB\nRss:   4 kB\nVmFlags: rd wr mr mw me ac \n",
                           kArea, "Size: 4 kB\nTHPeligible:           0\nVmFlags: rd wr lo \n")),
      absl::StrCat(kHeap, "VmFlags: rd wr mr mw me ac \n", kArea, "VmFlags: rd wr lo \n"));
  EXPECT_EQ(AreasOf(""), "");
}

TEST(KnownAreasTest, FlagsThatAnImageKeepsAreCompared) {
  const std::string before = absl::StrCat(kHeap, "VmFlags: rd wr ac \n", kArea, "VmFlags: rd wr lo hg \n");
  EXPECT_EQ(WhatDiffers(before, before), "");
  EXPECT_EQ(WhatDiffers(before, absl::StrCat(kHeap, "VmFlags: rd wr ac \n", kArea, "VmFlags: rd wr lo \n")),
            "7f0000000000");
  EXPECT_EQ(
      WhatDiffers(before, absl::StrCat(kHeap, "VmFlags: rd wr ac dc \n", kArea, "VmFlags: rd wr lo hg \n")),
      "55d0c1000000");
  EXPECT_EQ(
      WhatDiffers(before, absl::StrCat(kHeap, "VmFlags: rd ac uw sd \n", kArea, "VmFlags: hg rd lo \n")), "")
      << "rights are in the first line, and that it is tracked is no matter";
}

TEST(KnownAreasTest, WhatIsMappedElsewhereIsNotCompared) {
  EXPECT_EQ(WhatDiffers(absl::StrCat(kHeap, "VmFlags: rd \n"), absl::StrCat(kArea, "VmFlags: rd lo \n")), "");
}

TEST(KnownAreasTest, AProcessThatChangesFlagsIsFound) {
  KnownAreas known = KnownAreas::Make({getpid()}).value();
  const uint64_t size = 4 * PageSize();
  char* const at =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  // Two pages between others, so that it is one of its own.
  ASSERT_EQ(mprotect(at, PageSize(), PROT_NONE), 0);
  ASSERT_EQ(mprotect(at + 3 * PageSize(), PageSize(), PROT_NONE), 0);
  known.Read();
  EXPECT_EQ(known.Check(), absl::OkStatus());
  ASSERT_EQ(madvise(at + PageSize(), 2 * PageSize(), MADV_DONTFORK), 0);
  EXPECT_THAT(std::string(known.Check().message()), HasSubstr(absl::StrCat("process ", getpid())));
  ASSERT_EQ(madvise(at + PageSize(), 2 * PageSize(), MADV_DOFORK), 0);
  EXPECT_EQ(known.Check(), absl::OkStatus());
  munmap(at, size);
}

TEST(KnownAreasTest, OfOneThatHasEndedNothingIsSaid) {
  KnownAreas known = KnownAreas::Make({getpid(), 1 << 30}).value();
  known.Read();
  EXPECT_EQ(known.Check(), absl::OkStatus());
  char byte = 0;
  EXPECT_EQ(pread(known.files().at(getpid()), &byte, 1, 0), 1);
  EXPECT_EQ(pread(known.files().at(1 << 30), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace siding
