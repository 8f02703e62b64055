#include "agent/memory/tracked_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/memory/new_pages.h"
#include "agent/memory/precopy.h"
#include "agent/memory/share_pages.h"
#include "agent/os/processes.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/status.h"
#include "model/compaction.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// For so many dumps a process that has rewritten its memory is left alone: it pays for each page, and gains
// nothing.
constexpr int kRest = 9;  // this one, and eight more
// Areas that are read more slowly are read once: whoever stands still may have to wait for that.
constexpr Duration kShortRead = std::chrono::milliseconds(20);
// Over a network the base is read for one image in so many.
constexpr int kReadEvery = 4;
// Pages of each process that are compared as they were when it was stopped, although they are said to be
// unchanged since the last image, or since they were copied: where the kernel were wrong about many, it would
// be seen soon.
constexpr size_t kSampled = 64;
// Of those of the base so many are compared as well, in turn: each page once in so many images. No more than
// that many bytes of all.
constexpr uint64_t kCheckEvery = 8, kMostChecked = uint64_t{1} << 30;

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

// Whether these, by address, leave nothing of the run out.
bool Cover(const std::vector<MemoryArea>& areas, const PageRun& run) {
  auto area = std::partition_point(areas.begin(), areas.end(),
                                   [&](const MemoryArea& a) { return a.end <= run.address; });
  uint64_t covered = run.address;
  for (; area != areas.end() && area->begin <= covered && covered < run.end(); ++area) covered = area->end;
  return covered >= run.end();
}

// Some of the pages that are not copied from the stopped process.
std::vector<SourcedPages> Sample(const std::vector<SourcedPages>& all) {
  uint64_t count = 0;
  for (const SourcedPages& pages : all)
    if (pages.source != PageSource::kProcess) count += pages.pages;
  if (count == 0) return {};
  static thread_local std::mt19937_64 random{std::random_device{}()};
  std::set<uint64_t> chosen;
  for (size_t i = 0; i < kSampled; ++i)
    chosen.insert(std::uniform_int_distribution<uint64_t>(0, count - 1)(random));
  std::vector<SourcedPages> sample;
  uint64_t before = 0;
  auto next = chosen.begin();
  for (const SourcedPages& pages : all) {
    if (pages.source == PageSource::kProcess) continue;
    for (; next != chosen.end() && *next < before + pages.pages; ++next)
      sample.push_back(pages.Part(*next - before, 1));
    before += pages.pages;
  }
  return sample;
}

std::vector<PageRun> RunsOf(const std::vector<SourcedPages>& all) {
  std::vector<PageRun> runs;
  for (const SourcedPages& pages : all) runs.push_back({pages.address, pages.pages, kPagePresent});
  return runs;
}

// Those that are as in the last image.
std::vector<PageRun> OfBase(const std::vector<SourcedPages>& all) {
  std::vector<PageRun> runs;
  for (const SourcedPages& pages : all)
    if (pages.source == PageSource::kBase) Append({pages.address, pages.pages, kPageInParent}, runs);
  return runs;
}

uint64_t BytesOf(const std::vector<SourcedPages>& all) {
  uint64_t pages = 0;
  for (const SourcedPages& some : all) pages += some.pages;
  return pages * PageSize();
}

}  // namespace

TrackedDump::~TrackedDump() {
  if (uncounted_) tracking_.Forget();
  for (auto& [pid, process] : tracking_.processes) process.precopied.LoseCopies();
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
  if (process.precopied.distrusted()) {
    process.tracker.reset();
    process.precopied = {};
  }
  const auto maps = ReadMaps(pid);
  if (!maps.ok() || maps->has_ring) {
    process.tracker.reset();
    return absl::OkStatus();
  }
  if (!process.tracker) {
    if (ReadStatusNumber(pid, "RssAnon") * 1024 >= kLeastTracked.value) to_track_.push_back(pid);
    return absl::OkStatus();
  }
  if (draft_.base() == nullptr || tracking_.since != draft_.base()->key) return absl::OkStatus();
  auto count = process.tracker->CountPages();
  for (const PageRun& run : process.precopied.ToCopy())
    if (count.ok()) count->written = std::min(count->written + run.pages, count->present);
  if (count.ok() && !IsTooMuchNew(static_cast<double>(count->written), static_cast<double>(count->present)))
    return LeaveOut(pid, *count);
  process.tracker.reset();
  process.rest = kRest;
  return absl::OkStatus();
}

absl::Status TrackedDump::LeaveOut(pid_t pid, const WriteTracker::Count& count) {
  const uint64_t all = count.present * PageSize();
  if (Bytes{static_cast<int64_t>(all)} < kLeastToShare) return absl::OkStatus();
  const std::string name = absl::StrCat("pagemap-", ReadStatusNumber(pid, "NSpid"), ".img");
  LeftOutMemory memory{name, ParentPages(draft_, name), count, {}, {}, {}};
  absl::Status linked = memory.parents.Link();
  // What there is no room for is on the disk twice for a while; so is no more of it than of a whole image.
  if (linked.ok() && count.written * 2 > count.present &&
      count.written * PageSize() > CapturedPages::kMostRoom)
    linked = absl::FailedPreconditionError("too much of it is new");
  // Half, since it is still running.
  memory.is_scattered = linked.ok() && memory.parents.runs() + count.regions > kMostPageRuns / 2;
  if (linked.ok() && count.regions > kMostPageRuns / 2)
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
  for (const auto& [pid, memory] : left_out_) pages += memory.count.written;
  SIDING_ASSIGN_OR_RETURN(UniqueFd captured, scratch_.OpenScratch());
  SIDING_ASSIGN_OR_RETURN(captured_, CapturedPages::Make(pages * PageSize() * 5 / 4, std::move(captured)));
  SIDING_ASSIGN_OR_RETURN(UniqueFd precopied, scratch_.OpenScratch());
  SIDING_ASSIGN_OR_RETURN(precopied_, CapturedPages::Make(0, std::move(precopied)));
  if (tracking_.flags_change) return absl::OkStatus();
  auto known = KnownAreas::Make(LeftOut());
  if (known.ok()) known_.emplace(*std::move(known));
  return absl::OkStatus();
}

std::map<pid_t, int> TrackedDump::AreaFiles() const {
  return known_ ? known_->files() : std::map<pid_t, int>();
}

uint64_t TrackedDump::BytesLeftOut() const {
  uint64_t pages = 0;
  for (const auto& [pid, memory] : left_out_) pages += memory.count.present;
  return pages * PageSize();
}

std::vector<pid_t> TrackedDump::LeftOut() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, memory] : left_out_) pids.push_back(pid);
  return pids;
}

// ---- CRIU is about to stop it. ----

void TrackedDump::Prepare(const std::function<bool()>& stop) {
  if (left_out_.empty()) return;
  TakeToCheck(stop);
  precopy_.emplace(tracking_, init_, LeftOut(), BytesLeftOut(), *precopied_);
  NoteCopied(precopy_->Rounds(stop));
  if (!known_) return;
  known_->Read();
  // It takes a while, in which more is written.
  if (may_copy_.ok()) NoteCopied(precopy_->OneMore(stop));
}

// Of a base that is read anyway.
void TrackedDump::TakeToCheck(const std::function<bool()>& stop) {
  if (!IsBaseRead()) return;
  const uint64_t every = std::max(kCheckEvery, BytesLeftOut() / kMostChecked + 1);
  const uint64_t turn = draft_.is_near() ? tracking_.images : tracking_.images / kReadEvery;
  for (auto& [pid, memory] : left_out_) {
    const auto clean = tracking_.processes.at(pid).tracker->CleanPages();
    const absl::Status taken =
        clean.ok() ? memory.checked.Take(pid, *clean, every, turn, stop) : clean.status();
    if (!taken.ok())
      spdlog::info("{}: not all that should be is compared: {}", draft_.path(), std::string(taken.message()));
  }
}

void TrackedDump::CopyAgain(const std::function<bool()>& stop) {
  if (stop()) return;
  if (known_ && known_->took() < kShortRead) known_->Read();
  if (precopy_ && may_copy_.ok()) NoteCopied(precopy_->OneMore(stop));
}

void TrackedDump::NoteCopied(absl::Status may_copy) {
  may_copy_ = std::move(may_copy);
  if (!may_copy_.ok())
    spdlog::info("{}: no more is copied while the task runs: {}", draft_.path(),
                 std::string(may_copy_.message()));
}

// ---- It is stopped. ----

absl::Status TrackedDump::Judge(absl::Status status) {
  // Else it is the disk's problem, or a process has ended.
  if (!absl::IsInternal(status) || IsTierProblem(status)) return status;
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
    SIDING_ASSIGN_OR_RETURN(memory.own, ParsePagemap(*text));
    const absl::Status captured = CaptureProcess(pid, memory, stop);
    if (!captured.ok() && !IsAlive(pid, tracking_.processes.at(pid).start_time))
      return absl::AbortedError(absl::StrCat("process ", pid, " has ended while it was stopped"));
    SIDING_RETURN_IF_ERROR(captured);
    ++i;
  }
  uint64_t frozen = captured_ ? captured_->bytes() : 0;
  for (const auto& [pid, memory] : left_out_) frozen -= memory.sample.size() * PageSize();
  if (precopied_ && precopied_->bytes() > 0 && frozen * 4 > precopied_->bytes() * 3)
    tracking_.rest_from_rounds = Precopy::kRest;
  return BeginLaps(stop);
}

absl::Status TrackedDump::CaptureProcess(pid_t pid, LeftOutMemory& memory,
                                         const std::function<bool()>& stop) {
  MemoryTracking::Process& process = tracking_.processes.at(pid);
  if (!IsAlive(pid, process.start_time)) return absl::AbortedError("another has its number");
  if (stop()) return absl::CancelledError("called off");
  SIDING_ASSIGN_OR_RETURN(const WriteTracker::Lap lap, process.tracker->NextLap());
  const std::vector<PageRun> left_out = Flagged(memory.own.runs, kPageInParent);
  for (const PageRun& area : left_out) {
    if (Cover(lap.areas, area)) continue;
    return absl::InternalError(absl::StrCat("criu has left out memory of process ", pid, " at ",
                                            absl::Hex(area.address), " that is not private"));
  }
  memory.pages = process.precopied.Sources(Clipped(lap.pages, left_out));
  memory.sample = Sample(memory.pages);
  memory.sample_at = captured_->bytes();
  SIDING_RETURN_IF_ERROR(captured_->Take(pid, RunsOf(memory.sample), stop));
  uint64_t offset = captured_->bytes();
  std::vector<PageRun> written;
  for (SourcedPages& pages : memory.pages) {
    if (pages.source != PageSource::kProcess) continue;
    pages.offset = std::exchange(offset, offset + pages.pages * PageSize());
    written.push_back({pages.address, pages.pages, kPagePresent});
  }
  SIDING_RETURN_IF_ERROR(captured_->Take(pid, written, stop));
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
  if (known_) {
    const absl::Status same = known_->Check();
    tracking_.flags_change = !same.ok();
    SIDING_RETURN_IF_ERROR(same);
  }
  absl::StatusOr<Written> written = WriteAll(limits);
  SIDING_RETURN_IF_ERROR(Judge(written.status()));
  captured_.reset();
  precopied_.reset();
  return written;
}

// Over a network that would be all of its bytes for each image, and what is damaged there is found by a
// restore as well. But the images that share it must not become too many.
bool TrackedDump::IsBaseRead() const {
  return draft_.is_near() || tracking_.images % kReadEvery == kReadEvery - 1;
}

absl::StatusOr<TrackedDump::Written> TrackedDump::WriteAll(const SharingLimits& limits) {
  Written written;
  for (auto& [pid, memory] : left_out_) {
    SIDING_RETURN_IF_ERROR(WriteMemory(memory, limits, written));
    written.pagemaps.insert(memory.name);
    SIDING_RETURN_IF_ERROR(
        FaultAt<"agent.dump.tracked: the memory of a process is in the image, as it was tracked">());
  }
  if (captured_) SIDING_RETURN_IF_ERROR(captured_->CheckFile());
  if (precopied_) SIDING_RETURN_IF_ERROR(precopied_->CheckFile());
  // Also where all that were to be left out have ended.
  if (captured_) SIDING_RETURN_IF_ERROR(CheckNothingIsMissing(written.pagemaps));
  if (precopied_) written.precopied = Bytes{static_cast<int64_t>(precopied_->bytes())};
  return written;
}

absl::Status TrackedDump::WriteMemory(LeftOutMemory& memory, const SharingLimits& limits,
                                      Written& written) const {
  const std::vector<PageRun> shared = OfBase(memory.pages);
  uint64_t as_before = 0;
  for (const PageRun& run : shared) as_before += run.pages * PageSize();
  const uint64_t all = memory.own.Present() * PageSize() + BytesOf(memory.pages);
  memory.parents.Choose(shared, all - as_before, /*may_stay=*/!memory.is_scattered);
  // However long it takes: CRIU has not written it, so it cannot stay whole. What is damaged must not come
  // into a file of its own, under a checksum that is right.
  SIDING_RETURN_IF_ERROR(memory.parents.Verify({limits.stop}, IsBaseRead()));
  SIDING_RETURN_IF_ERROR(CheckUnchanged(memory, limits.stop));
  NewPages rest(draft_.path(), memory.name, memory.own);
  SIDING_RETURN_IF_ERROR(WritePages(memory, limits.stop, rest));
  if (rest.pagemap().runs.size() + memory.parents.runs() > limits.most_runs)
    return absl::OutOfRangeError("what has changed is scattered");
  SIDING_RETURN_IF_ERROR(rest.Finish());
  SIDING_RETURN_IF_ERROR(rest.Replace());
  written.fresh += Bytes{static_cast<int64_t>(rest.bytes())};
  written.unused += Bytes{static_cast<int64_t>(memory.parents.unused())};
  return memory.parents.Settle();
}

absl::Status TrackedDump::WritePages(const LeftOutMemory& memory, const std::function<bool()>& stop,
                                     NewPages& to) const {
  SIDING_RETURN_IF_ERROR(to.Open());
  const std::string path = draft_.path() + "/" + to.pages_name();
  const UniqueFd pages(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!pages.valid()) return ErrnoError(errno, path);
  const auto may_go_on = [&] { return stop() ? absl::CancelledError("called off") : absl::OkStatus(); };
  const auto add_new = [&](const SourcedPages& some) {
    return to.AddFrom({some.address, some.pages, kPagePresent}, may_go_on,
                      [&](uint64_t from, uint64_t bytes, char* bytes_to) {
                        return Read(memory, some, from, bytes, bytes_to);
                      });
  };
  uint64_t offset = 0;
  auto next = memory.pages.begin();
  for (const PageRun& run : memory.own.runs) {
    to.BeginRun();
    if (!run.present() && !run.in_parent()) to.Keep(run);
    if (run.present()) {
      SIDING_RETURN_IF_ERROR(to.AddFrom(run, may_go_on, [&](uint64_t from, uint64_t bytes, char* bytes_to) {
        return ReadPages(pages.get(), offset + from, bytes, bytes_to);
      }));
      offset += run.pages * PageSize();
    }
    for (; run.in_parent() && next != memory.pages.end() && next->address < run.end(); ++next) {
      if (next->source != PageSource::kBase) {
        SIDING_RETURN_IF_ERROR(add_new(*next));
        continue;
      }
      SIDING_RETURN_IF_ERROR(memory.parents.ForEach(next->address, next->pages,
                                                    [&](uint64_t address, uint64_t some, bool stays) {
                                                      if (!stays)
                                                        return add_new({address, some, PageSource::kBase});
                                                      to.AddShared(address, some);
                                                      return absl::OkStatus();
                                                    }));
    }
  }
  return absl::OkStatus();
}

// `from` in bytes.
absl::Status TrackedDump::Read(const LeftOutMemory& memory, const SourcedPages& pages, uint64_t from,
                               uint64_t bytes, char* to) const {
  switch (pages.source) {
    case PageSource::kBase:
      return memory.parents.Read(pages.address + from, bytes, to);
    case PageSource::kPrecopied:
      return precopied_->Read(pages.offset + from, bytes, to);
    case PageSource::kProcess:
      return captured_->Read(pages.offset + from, bytes, to);
  }
  return absl::InternalError("no such source");
}

absl::Status TrackedDump::CheckUnchanged(const LeftOutMemory& memory,
                                         const std::function<bool()>& stop) const {
  std::string now(PageSize(), '\0'), then = now;
  uint64_t at = memory.sample_at;
  for (const SourcedPages& page : memory.sample) {
    SIDING_RETURN_IF_ERROR(Read(memory, page, 0, PageSize(), then.data()));
    SIDING_RETURN_IF_ERROR(captured_->Read(at, PageSize(), now.data()));
    at += PageSize();
    // Of zeros: the process had given it away (MADV_FREE), and the kernel has taken it meanwhile.
    if (now == then || IsOfZeros(now.data())) continue;
    return HasChanged(memory, page.address, stop);
  }
  SIDING_ASSIGN_OR_RETURN(
      const auto changed,
      memory.checked.FindChanged(memory.pages, [&](uint64_t address, uint64_t bytes, char* to) {
        if (stop()) return absl::CancelledError("called off");
        return memory.parents.Read(address, bytes, to);
      }));
  return changed ? HasChanged(memory, *changed, stop) : absl::OkStatus();
}

absl::Status TrackedDump::HasChanged(const LeftOutMemory& memory, uint64_t address,
                                     const std::function<bool()>& stop) const {
  // Over a network the base may not have been read.
  SIDING_RETURN_IF_ERROR(memory.parents.Verify({stop}, /*all=*/true));
  return absl::InternalError(absl::StrCat("a page at ", absl::Hex(address), " of ", memory.name,
                                          " has changed, and the kernel says that it has not"));
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
  ++tracking_.images;
  for (auto& [pid, process] : tracking_.processes) {
    process.rest = std::max(0, process.rest - 1);
    process.precopied = {};
  }
}

}  // namespace siding
