#include "agent/memory/private_memory.h"

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

// Code and data of the kernel's ("[vdso]", "[vvar]", "[vsyscall]", "[uprobes]"), which are mapped without a
// file, too.
bool IsOfTheKernel(absl::string_view name) {
  return absl::StartsWith(name, "[v") || absl::StartsWith(name, "[uprobes");
}

}  // namespace

ProcessMaps ParseMaps(absl::string_view maps) {
  ProcessMaps found;
  for (const absl::string_view text : absl::StrSplit(maps, '\n', absl::SkipEmpty())) {
    const std::string line(text);
    MemoryArea area;
    char access[8];
    unsigned long inode = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %*s %*s %lu %n", &area.begin, &area.end, access, &inode,
                    &name) != 4)
      continue;
    const absl::string_view is = absl::string_view(line).substr(static_cast<size_t>(name));
    if (absl::StartsWith(is, "/[aio]") || absl::StartsWith(is, "anon_inode:[io_uring]"))
      found.has_ring = true;
    if (access[3] == 'p' && inode == 0 && area.begin < area.end && !IsOfTheKernel(is))
      found.areas.push_back(area);
  }
  return found;
}

absl::StatusOr<ProcessMaps> ReadMaps(pid_t pid) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat("/proc/", pid, "/maps")));
  return ParseMaps(text);
}

}  // namespace siding
