#include "agent/memory/tracked_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "agent/memory/new_pages.h"
#include "agent/memory/share_pages.h"
#include "agent/os/processes.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// For so many dumps a process that has rewritten its memory is left alone: it pays for each page, and gains
// nothing.
constexpr int kRest = 9;  // this one, and eight more
// Pages of each process that are compared although they are said to be unchanged: where the kernel were wrong
// about many, it would be seen soon.
constexpr size_t kSampled = 64;

// Those of `pages` that are in `areas`; both are by address.
std::vector<PageRun> Clipped(const std::vector<PageRun>& pages, const std::vector<PageRun>& areas) {
  std::vector<PageRun> clipped;
  auto page = pages.begin();
  for (const PageRun& area : areas) {
    while (page != pages.end() && page->end() <= area.address) ++page;
    for (auto i = page; i != pages.end() && i->address < area.end(); ++i) {
      const uint64_t begin = std::max(i->address, area.address), end = std::min(i->end(), area.end());
      clipped.push_back({begin, (end - begin) / PageSize(), i->flags});
    }
  }
  return clipped;
}

std::vector<PageRun> Flagged(const std::vector<PageRun>& runs, uint32_t flag) {
  std::vector<PageRun> flagged;
  for (const PageRun& run : runs)
    if ((run.flags & flag) != 0) flagged.push_back(run);
  return flagged;
}

std::vector<MemoryArea> AreasOf(const std::vector<PagePiece>& pieces) {
  std::vector<MemoryArea> areas;
  for (const PagePiece& piece : pieces) {
    if (!areas.empty() && areas.back().end == piece.address)
      areas.back().end = piece.end;
    else
      areas.push_back({piece.address, piece.end});
  }
  return areas;
}

// Whether these, by address, leave nothing of the run out.
bool Cover(const std::vector<MemoryArea>& areas, const PageRun& run) {
  auto area = std::partition_point(areas.begin(), areas.end(),
                                   [&](const MemoryArea& a) { return a.end <= run.address; });
  uint64_t covered = run.address;
  for (; area != areas.end() && area->begin <= covered && covered < run.end(); ++area) covered = area->end;
  return covered >= run.end();
}

// Some of the pages of these runs.
std::vector<PageRun> Sample(const std::vector<PageRun>& runs) {
  uint64_t all = 0;
  for (const PageRun& run : runs) all += run.pages;
  if (all == 0) return {};
  static thread_local std::mt19937_64 random{std::random_device{}()};
  std::set<uint64_t> chosen;
  for (size_t i = 0; i < kSampled; ++i)
    chosen.insert(std::uniform_int_distribution<uint64_t>(0, all - 1)(random));
  std::vector<PageRun> sample;
  uint64_t before = 0;
  auto next = chosen.begin();
  for (const PageRun& run : runs) {
    for (; next != chosen.end() && *next < before + run.pages; ++next)
      sample.push_back({run.address + (*next - before) * PageSize(), 1, run.flags});
    before += run.pages;
  }
  return sample;
}

// In pieces of at most kPagesAtOnce.
absl::Status AddNew(const PageRun& run, const std::function<absl::Status(uint64_t bytes, char* to)>& read,
                    NewPages& to) {
  std::string bytes;
  for (uint64_t done = 0; done < run.pages; done += kPagesAtOnce) {
    const uint64_t count = std::min(kPagesAtOnce, run.pages - done);
    bytes.resize(count * PageSize());
    SIDING_RETURN_IF_ERROR(read(bytes.size(), bytes.data()));
    SIDING_RETURN_IF_ERROR(to.AddNew(run.address + done * PageSize(), count, run.flags, bytes.data()));
  }
  return absl::OkStatus();
}

// Pages that the parents have.
absl::Status AddFrom(const ParentPages& parents, const PageRun& run, const std::function<bool()>& stop,
                     NewPages& to) {
  const auto& pieces = parents.pieces();
  auto piece = std::partition_point(pieces.begin(), pieces.end(),
                                    [&](const PagePiece& p) { return p.end <= run.address; });
  for (uint64_t at = run.address; at < run.end(); ++piece) {
    if (stop()) return absl::CancelledError("called off");
    const uint64_t end = std::min(run.end(), piece->end);
    const auto read = [&](uint64_t bytes, char* to_here) {
      at += bytes;
      return parents.layers().Read(*piece, at - bytes, bytes, to_here);
    };
    SIDING_RETURN_IF_ERROR(AddNew({at, (end - at) / PageSize(), kPagePresent}, read, to));
  }
  return absl::OkStatus();
}

}  // namespace

TrackedDump::~TrackedDump() {
  if (uncounted_) tracking_.Forget();
}

// ---- The task runs. ----

absl::Status TrackedDump::Begin() {
  std::map<pid_t, MemoryTracking::Process> living;
  for (const pid_t pid : ProcessTree(init_)) {
    const auto stat = ReadProcessStat(pid);
    if (!stat) continue;
    auto known = tracking_.processes.find(pid);
    if (known != tracking_.processes.end() && known->second.start_time == stat->start_time)
      living[pid] = std::move(known->second);
    else
      living[pid].start_time = stat->start_time;
  }
  tracking_.processes = std::move(living);
  size_t tracked = 0;
  for (auto& [pid, process] : tracking_.processes) {
    SIDING_RETURN_IF_ERROR(BeginProcess(pid));
    if (process.tracker) ++tracked;
  }
  to_track_.resize(std::min(to_track_.size(), kMostTracked - std::min(tracked, kMostTracked)));
  const absl::Status room = MakeRoom();
  if (room.ok()) return room;
  spdlog::warn("{} is written whole: {}", draft_.path(), std::string(room.message()));
  for (auto& [pid, memory] : left_out_) SIDING_RETURN_IF_ERROR(memory.parents.GiveUp());
  left_out_.clear();
  return absl::OkStatus();
}

absl::Status TrackedDump::BeginProcess(pid_t pid) {
  MemoryTracking::Process& process = tracking_.processes.at(pid);
  if (process.rest > 0) return absl::OkStatus();
  const auto maps = ReadMaps(pid);
  if (!maps.ok() || maps->has_aio) {
    process.tracker.reset();
    return absl::OkStatus();
  }
  if (!process.tracker) {
    if (ReadStatusNumber(pid, "RssAnon") * 1024 >= kLeastTracked.value) to_track_.push_back(pid);
    return absl::OkStatus();
  }
  if (draft_.base() == nullptr || tracking_.since != draft_.base()->key) return absl::OkStatus();
  const auto count = process.tracker->CountPages();
  if (count.ok() && !IsTooMuchNew(count->written, count->present)) return LeaveOut(pid, *count);
  process.tracker.reset();
  process.rest = kRest;
  return absl::OkStatus();
}

absl::Status TrackedDump::LeaveOut(pid_t pid, const WriteTracker::Count& count) {
  const uint64_t all = count.present * PageSize();
  if (Bytes{static_cast<int64_t>(all)} < kLeastToShare) return absl::OkStatus();
  const std::string name = absl::StrCat("pagemap-", ReadStatusNumber(pid, "NSpid"), ".img");
  LeftOutMemory memory{name, ParentPages(draft_, name), {}, {}};
  absl::Status linked = memory.parents.Link(all);
  memory.becomes_whole =
      linked.ok() && HoldsTooMuch(memory.parents.stored() + count.written * PageSize(), all);
  // What there is no room for is on the disk twice for a while; so is no more of it than of a whole image.
  if (linked.ok() && count.written * 2 > count.present &&
      count.written * PageSize() > CapturedPages::kMostRoom)
    linked = absl::FailedPreconditionError("too much of it is new");
  // Half, since it is still running.
  if (linked.ok() && memory.parents.runs() + count.regions > kMostPageRuns / 2)
    linked = absl::FailedPreconditionError("it is scattered");
  if (linked.ok()) {
    left_out_.emplace(pid, std::move(memory));
    return absl::OkStatus();
  }
  spdlog::log(absl::IsFailedPrecondition(linked) ? spdlog::level::info : spdlog::level::warn,
              "{}/{} is written whole: {}", draft_.path(), name, std::string(linked.message()));
  return memory.parents.GiveUp();
}

// For what has been written by now, and a quarter more.
absl::Status TrackedDump::MakeRoom() {
  if (left_out_.empty()) return absl::OkStatus();
  uint64_t pages = 0;
  for (const auto& [pid, memory] : left_out_) {
    const auto count = tracking_.processes.at(pid).tracker->CountPages();
    if (count.ok()) pages += count->written;
  }
  SIDING_ASSIGN_OR_RETURN(captured_, CapturedPages::Make(pages * PageSize() * 5 / 4, draft_.path()));
  return absl::OkStatus();
}

std::vector<pid_t> TrackedDump::LeftOut() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, memory] : left_out_) pids.push_back(pid);
  return pids;
}

// ---- It is stopped. ----

absl::Status TrackedDump::Judge(absl::Status status) {
  // Else it is the disk's problem, or a process has ended.
  if (!absl::IsInternal(status)) return status;
  spdlog::warn("{}: what the task writes is not tracked any more: {}", draft_.path(),
               std::string(status.message()));
  tracking_.given_up = true;
  return status;
}

absl::Status TrackedDump::Capture(const std::function<bool()>& stop) {
  if (stop()) return absl::CancelledError("called off");
  uncounted_ = true;
  return Judge(CaptureAll(stop));
}

absl::Status TrackedDump::CaptureAll(const std::function<bool()>& stop) {
  for (auto i = left_out_.begin(); i != left_out_.end();) {
    auto& [pid, memory] = *i;
    const auto text = ReadFile(draft_.path() + "/" + memory.name);
    if (absl::IsNotFound(text.status())) {  // it has ended before the others were stopped
      SIDING_RETURN_IF_ERROR(memory.parents.GiveUp());
      i = left_out_.erase(i);
      continue;
    }
    SIDING_RETURN_IF_ERROR(text.status());
    SIDING_ASSIGN_OR_RETURN(const Pagemap own, ParsePagemap(*text));
    const absl::Status captured = CaptureProcess(pid, own, memory, stop);
    if (!captured.ok() && !IsAlive(pid, tracking_.processes.at(pid).start_time))
      return absl::AbortedError(absl::StrCat("process ", pid, " has ended while it was stopped"));
    SIDING_RETURN_IF_ERROR(captured);
    ++i;
  }
  return BeginLaps(stop);
}

absl::Status TrackedDump::CaptureProcess(pid_t pid, const Pagemap& own, LeftOutMemory& memory,
                                         const std::function<bool()>& stop) {
  MemoryTracking::Process& process = tracking_.processes.at(pid);
  if (!IsAlive(pid, process.start_time)) return absl::AbortedError("another has its number");
  if (stop()) return absl::CancelledError("called off");
  SIDING_ASSIGN_OR_RETURN(const WriteTracker::Lap lap, process.tracker->NextLap());
  const std::vector<PageRun> left_out = Flagged(own.runs, kPageInParent);
  for (const PageRun& area : left_out) {
    if (Cover(lap.areas, area)) continue;
    return absl::InternalError(absl::StrCat("criu has left out memory of process ", pid, " at ",
                                            absl::Hex(area.address), " that is not private"));
  }
  memory.pages = Clipped(lap.pages, left_out);
  memory.sample = Sample(Flagged(memory.pages, kPageInParent));
  memory.at = captured_->bytes();
  SIDING_RETURN_IF_ERROR(captured_->Take(pid, Flagged(memory.pages, kPagePresent), stop));
  SIDING_RETURN_IF_ERROR(captured_->Take(pid, memory.sample, stop));
  if (lap.is_last) process.tracker.reset();
  return absl::OkStatus();
}

// Of the processes that CRIU has copied whole.
absl::Status TrackedDump::BeginLaps(const std::function<bool()>& stop) {
  for (auto& [pid, userfaultfd] : given_) {
    const auto process = tracking_.processes.find(pid);
    if (process == tracking_.processes.end()) continue;
    auto tracker = WriteTracker::Make(pid, std::move(userfaultfd));
    if (tracker.ok()) {
      process->second.tracker = *std::move(tracker);
    } else {
      process->second.rest = kRest;
      spdlog::info("process {} is not tracked: {}", pid, std::string(tracker.status().message()));
    }
  }
  for (auto& [pid, process] : tracking_.processes) {
    if (stop()) return absl::CancelledError("called off");
    if (!process.tracker || left_out_.count(pid) > 0) continue;
    if (!IsAlive(pid, process.start_time) || !process.tracker->SkipLap()) process.tracker.reset();
  }
  return absl::OkStatus();
}

// ---- It runs again. ----

absl::StatusOr<TrackedDump::Written> TrackedDump::Write(const SharingLimits& limits) {
  absl::StatusOr<Written> written = WriteAll(limits);
  SIDING_RETURN_IF_ERROR(Judge(written.status()));
  captured_.reset();
  return written;
}

absl::StatusOr<TrackedDump::Written> TrackedDump::WriteAll(const SharingLimits& limits) {
  Written written;
  for (auto& [pid, memory] : left_out_) {
    // However long it takes: CRIU has not written it, so it cannot stay whole.
    SIDING_RETURN_IF_ERROR(memory.parents.Verify({limits.stop}));
    SIDING_RETURN_IF_ERROR(WriteMemory(memory, limits, written));
    written.pagemaps.insert(memory.name);
    SIDING_RETURN_IF_ERROR(
        FaultAt<"agent.dump.tracked: the memory of a process is in the image, as it was tracked">());
  }
  // Also where all that were to be left out have ended.
  if (captured_) SIDING_RETURN_IF_ERROR(CheckNothingIsMissing(written.pagemaps));
  return written;
}

absl::Status TrackedDump::WriteMemory(LeftOutMemory& memory, const SharingLimits& limits,
                                      Written& written) const {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(draft_.path() + "/" + memory.name));
  SIDING_ASSIGN_OR_RETURN(const Pagemap own, ParsePagemap(text));
  NewPages rest(draft_.path(), memory.name, own);
  SIDING_RETURN_IF_ERROR(rest.Open());
  const std::string path = draft_.path() + "/" + rest.pages_name();
  const UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!pages.valid()) return ErrnoError(errno, path);
  const std::vector<MemoryArea> known = AreasOf(memory.parents.pieces());
  uint64_t offset = 0, at = memory.at, shared = 0;
  const auto from_criu = [&](uint64_t bytes, char* to) {
    offset += bytes;
    return ReadPages(pages.get(), offset - bytes, bytes, to);
  };
  const auto from_captured = [&](uint64_t bytes, char* to) {
    at += bytes;
    return captured_->Read(at - bytes, bytes, to);
  };
  auto page = memory.pages.begin();
  for (const PageRun& run : own.runs) {
    if (limits.stop()) return absl::CancelledError("called off");
    rest.BeginRun();
    if (run.present()) SIDING_RETURN_IF_ERROR(AddNew(run, from_criu, rest));
    if (!run.present() && !run.in_parent()) rest.Keep(run);
    for (; run.in_parent() && page != memory.pages.end() && page->address < run.end(); ++page) {
      if (page->present()) {
        SIDING_RETURN_IF_ERROR(AddNew(*page, from_captured, rest));
        continue;
      }
      if (!Cover(known, *page))
        return absl::InternalError(absl::StrCat("a page at ", absl::Hex(page->address),
                                                " is said to be as in the last image, which has none"));
      if (memory.becomes_whole) {
        SIDING_RETURN_IF_ERROR(AddFrom(memory.parents, *page, limits.stop, rest));
        continue;
      }
      rest.AddShared(page->address, page->pages);
      shared += page->pages * PageSize();
    }
  }
  SIDING_RETURN_IF_ERROR(CompareSample(memory, at));
  if (rest.pagemap().runs.size() + memory.parents.runs() > limits.most_runs)
    return absl::OutOfRangeError("what has changed is scattered");
  SIDING_RETURN_IF_ERROR(rest.Finish());
  SIDING_RETURN_IF_ERROR(rest.Replace());
  written.fresh += Bytes{static_cast<int64_t>(rest.bytes())};
  if (memory.becomes_whole) return memory.parents.GiveUp();
  written.unused += Bytes{static_cast<int64_t>(memory.parents.stored() - shared)};
  return absl::OkStatus();
}

// `at`: where it begins in captured_.
absl::Status TrackedDump::CompareSample(const LeftOutMemory& memory, uint64_t at) const {
  std::string now(PageSize(), '\0'), then = now;
  for (const PageRun& page : memory.sample) {
    const auto& pieces = memory.parents.pieces();
    const auto piece = std::partition_point(pieces.begin(), pieces.end(),
                                            [&](const PagePiece& p) { return p.end <= page.address; });
    SIDING_RETURN_IF_ERROR(memory.parents.layers().Read(*piece, page.address, PageSize(), then.data()));
    SIDING_RETURN_IF_ERROR(captured_->Read(at, PageSize(), now.data()));
    at += PageSize();
    // Of zeros: the process had given it away (MADV_FREE), and the kernel has taken it meanwhile.
    if (now != then && now.find_first_not_of('\0') != std::string::npos)
      return absl::InternalError(absl::StrCat("a page at ", absl::Hex(page.address), " of ", memory.name,
                                              " has changed, and the kernel says that it has not"));
  }
  return absl::OkStatus();
}

// A memory that CRIU has left out, and that is none of ours.
absl::Status TrackedDump::CheckNothingIsMissing(const std::set<std::string>& whole) const {
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(draft_.path()));
  for (const std::string& name : names) {
    if (!IsPagemap(name) || whole.count(name) > 0) continue;
    SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(draft_.path() + "/" + name));
    SIDING_ASSIGN_OR_RETURN(const Pagemap pagemap, ParsePagemap(text));
    if (!Flagged(pagemap.runs, kPageInParent).empty())
      return absl::InternalError(name + " lacks pages that criu was not told to leave out");
  }
  return absl::OkStatus();
}

void TrackedDump::Counts() {
  if (!uncounted_) return;
  uncounted_ = false;
  tracking_.since = key_;
  for (auto& [pid, process] : tracking_.processes) process.rest = std::max(0, process.rest - 1);
}

}  // namespace siding
