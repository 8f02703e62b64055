#include "controller/notify/notifier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

constexpr size_t kAtOnce = 100;
constexpr size_t kMostBytes = 256 << 10;  // of a call, as they are in memory
// Of events that it is not told of: after so many it is written down that they are done with.
constexpr int64_t kSkippedAtMost = 1000;
constexpr Duration kShortestPause = std::chrono::seconds(1), kLongestPause = std::chrono::minutes(5);

}  // namespace

Duration PauseBeforeTelling(int failures) {
  Duration pause = kShortestPause;
  for (int i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  return std::min(pause, kLongestPause);
}

Notifier::Notifier(EventSource source, NotifierOptions options)
    : source_(std::move(source)), options_(std::move(options)), begun_(source_.journal()), most_(kAtOnce) {
  counts_.name = options_.name;
  counts_.at = begun_.newest;
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

Notifier::~Notifier() { RequestStop(); }

void Notifier::RequestStop() {
  thread_.request_stop();
  { MutexLock lock(mutex_); }  // it is about to wait, or waits
  stopped_.NotifyAll();
}

ToldCounts Notifier::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

void Notifier::Run(const std::stop_token& stop) {
  while (kept_ < 0 && !stop.stop_requested()) {
    const auto was = WhereItWas();
    // Written again at once: it may be of another copy of the journal.
    const bool is_known = was.ok() || absl::IsNotFound(was.status());
    const int64_t seq = was.ok() ? *was : begun_.newest;
    if (const absl::Status begun = is_known ? Keep(seq) : was.status(); !begun.ok()) {
      Failed(begun, stop);
      continue;
    }
    kept_ = seq;
    SetAt(kept_);
  }
  while (!stop.stop_requested()) {
    const auto events = source_.after(at(), kAtOnce);
    const absl::Status done = events.ok() ? TellSome(*events, stop) : events.status();
    if (!done.ok() && !stop.stop_requested()) Failed(done, stop);
  }
  if (kept_ >= 0 && kept_ < at()) Keep(at()).IgnoreError();
}

absl::Status Notifier::TellSome(const std::vector<v1::Event>& events, const std::stop_token& stop) {
  if (events.empty()) return absl::OkStatus();
  std::vector<v1::Event> wanted;
  size_t bytes = 0;
  int64_t until = at();
  bool all = true;
  for (const v1::Event& event : events) {
    const bool is_wanted = options_.kinds.empty() || options_.kinds.contains(event.kind());
    bytes += is_wanted ? event.ByteSizeLong() : 0;
    all = !is_wanted || wanted.empty() || (wanted.size() < most_ && bytes <= kMostBytes);
    if (!all) break;
    if (is_wanted) wanted.push_back(event);
    until = event.seq();
  }
  if (!wanted.empty()) {
    if (receiver_ == nullptr) {
      SIDING_ASSIGN_OR_RETURN(receiver_, options_.open());
    }
    const Receiver::Told told = receiver_->Tell(wanted, stop);
    FaultHere<"notify.told: a receiver has events, which is not yet remembered">();
    {
      MutexLock lock(mutex_);
      counts_.told += static_cast<int64_t>(told.count);
    }
    if (!told.why.ok()) {
      if (told.count > 0) SetAt(wanted[told.count - 1].seq());
      return Annotate(told.why, absl::StrCat("of events from ", wanted[told.count].seq(), " (",
                                             wanted[told.count].kind(), ") on"));
    }
    if (failures_ > 0) spdlog::info("events go to {} again", options_.name);
    failures_ = 0;
    most_ = std::min(2 * most_, kAtOnce);
  }
  SetAt(until);
  if (wanted.empty() && until - kept_ < kSkippedAtMost) return absl::OkStatus();
  if (const absl::Status kept = Keep(until); kept.ok()) {
    kept_ = until;
  } else {
    spdlog::warn("how far {} has been told is not remembered: {}", options_.name,
                 std::string(kept.message()));
  }
  if (all && events.size() < kAtOnce) Wait(options_.between, stop);
  return absl::OkStatus();
}

void Notifier::Failed(const absl::Status& why, const std::stop_token& stop) {
  const Duration pause = options_.pause(++failures_);
  {
    MutexLock lock(mutex_);
    ++counts_.failures;
  }
  spdlog::warn("{} could not be told: {}; tried again in {}", options_.name, std::string(why.message()),
               FormatDuration(pause));
  receiver_.reset();
  most_ = std::max<size_t>(1, most_ / 2);
  Wait(pause, stop);
}

void Notifier::Wait(Duration time, const std::stop_token& stop) {
  const auto until = std::chrono::steady_clock::now() + time;
  MutexLock lock(mutex_);
  stopped_.WaitUntil(mutex_, until, [&] { return stop.stop_requested(); });
}

void Notifier::SetAt(int64_t seq) {
  MutexLock lock(mutex_);
  counts_.at = seq;
}

int64_t Notifier::at() const {
  MutexLock lock(mutex_);
  return counts_.at;
}

// "1041 0": the event, and when the copy of the journal was put back in which it has that number.
absl::StatusOr<int64_t> Notifier::WhereItWas() const {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.file));
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  int64_t seq = 0, restored_us = 0;
  if (words.size() != 2 || !absl::SimpleAtoi(words[0], &seq) || !absl::SimpleAtoi(words[1], &restored_us) ||
      seq < 0)
    return absl::DataLossError(
        absl::StrCat(options_.file,
                     ": expected two numbers; to tell it of what happens from then on, remove "
                     "the file and start the controller again"));
  // Events behind the copy are others than those that it was told.
  if (restored_us != begun_.restored_us) seq = std::min(seq, begun_.copied_until);
  return std::min(seq, begun_.newest);
}

absl::Status Notifier::Keep(int64_t seq) const {
  SIDING_RETURN_IF_ERROR(MakeDirectories(options_.file.substr(0, options_.file.rfind('/')), 0700));
  return WriteFileDurably(options_.file, absl::StrCat(seq, " ", begun_.restored_us, "\n"), 0600);
}

}  // namespace siding
