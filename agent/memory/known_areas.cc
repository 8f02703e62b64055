#include "agent/memory/known_areas.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr absl::string_view kFlags = "VmFlags:";
// That CRIU restores, or refuses: proc_parse.c, parse_vmflags().
const std::set<absl::string_view> kKept = {"gd", "lo", "nr", "ht", "sr", "rr", "dc", "dd", "mg",
                                           "hg", "nh", "wf", "io", "pf", "ss", "dp", "mw"};

std::set<absl::string_view> KeptOf(absl::string_view line) {
  std::set<absl::string_view> kept;
  for (const absl::string_view flag : absl::StrSplit(line.substr(kFlags.size()), ' ', absl::SkipEmpty()))
    if (kKept.count(flag) > 0) kept.insert(flag);
  return kept;
}

// By where each mapping begins.
std::map<absl::string_view, std::set<absl::string_view>> FlagsOf(absl::string_view areas) {
  std::map<absl::string_view, std::set<absl::string_view>> flags;
  absl::string_view begin;
  for (const absl::string_view line : absl::StrSplit(areas, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, kFlags))
      flags[begin] = KeptOf(line);
    else
      begin = line.substr(0, line.find('-'));
  }
  return flags;
}

absl::StatusOr<std::string> ReadAreas(pid_t pid) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(absl::StrCat("/proc/", pid, "/smaps")));
  return AreasOf(text);
}

}  // namespace

std::string AreasOf(absl::string_view smaps) {
  std::string areas;
  for (const absl::string_view line : absl::StrSplit(smaps, '\n', absl::SkipEmpty())) {
    const bool is_first = absl::ascii_isdigit(static_cast<unsigned char>(line[0])) ||
                          absl::ascii_islower(static_cast<unsigned char>(line[0]));
    if (is_first || absl::StartsWith(line, kFlags)) absl::StrAppend(&areas, std::string(line), "\n");
  }
  return areas;
}

std::string WhatDiffers(absl::string_view before, absl::string_view after) {
  const auto now = FlagsOf(after);
  for (const auto& [begin, flags] : FlagsOf(before)) {
    const auto found = now.find(begin);
    if (found != now.end() && found->second != flags) return std::string(begin);
  }
  return "";
}

absl::StatusOr<KnownAreas> KnownAreas::Make(const std::vector<pid_t>& pids) {
  KnownAreas all;
  for (const pid_t pid : pids) {
    UniqueFd file(memfd_create("known areas", MFD_CLOEXEC));
    if (!file.valid()) return ErrnoError(errno, "memfd_create");
    all.known_[pid] = {std::move(file), ""};
  }
  return all;
}

std::map<pid_t, int> KnownAreas::files() const {
  std::map<pid_t, int> files;
  for (const auto& [pid, known] : known_) files[pid] = known.file.get();
  return files;
}

void KnownAreas::Read() {
  const auto begun = std::chrono::steady_clock::now();
  for (auto& [pid, known] : known_) {
    auto areas = ReadAreas(pid);
    known.areas.clear();
    // A part of them is none: CRIU compares all.
    const bool is_empty = ftruncate(known.file.get(), 0) == 0 && lseek(known.file.get(), 0, SEEK_SET) == 0;
    if (is_empty && areas.ok() && WriteAll(known.file, *areas, "known areas").ok())
      known.areas = *std::move(areas);
  }
  took_ = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
}

absl::Status KnownAreas::Check() const {
  for (const auto& [pid, known] : known_) {
    const auto now = ReadAreas(pid);
    if (!now.ok()) continue;  // it has ended
    if (const std::string area = WhatDiffers(known.areas, *now); !area.empty())
      return absl::AbortedError(absl::StrCat("process ", pid, " has changed flags of its memory at ", area,
                                             " while it was dumped"));
  }
  return absl::OkStatus();
}

}  // namespace siding
