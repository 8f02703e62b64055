#include "page/server/event_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::page {
namespace {

std::string TextOf(const FeedPart& part) {
  std::string text;
  for (const FeedEvent& event : part.events)
    absl::StrAppend(&text, "id: ", event.seq, "\ndata: ", event.json, "\n\n");
  return text;
}

// Names a sequence, and is no event: a page that comes back need not be told again of what was not for its
// eyes.
std::string Mark(int64_t seq) { return absl::StrCat(": here\nid: ", seq, "\n\n"); }

}  // namespace

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsCancelled(status);
}

EventFeed::EventFeed(Source source, const Clock& clock, Duration longest)
    : source_(std::move(source)), clock_(clock), longest_(longest), last_beat_(clock.Now()) {
  if (const absl::Status status = ComeBack(); !status.ok()) Leave(status);
}

std::shared_ptr<ByteStream> EventFeed::Follow(std::optional<int64_t> after) {
  auto stream = std::make_shared<ByteStream>(kMostUnread);
  MutexLock lock(mutex_);
  if (ended_ || !refusal_.ok()) {
    stream->End();
    return stream;
  }
  Follower follower{stream, std::min(after.value_or(newest_), newest_), clock_.Now()};
  stream->Write(Mark(follower.after));
  followers_.push_back(std::move(follower));
  return stream;
}

absl::Status EventFeed::Turn(Duration wait) {
  absl::Status status = refusal().ok() ? HandOut(wait) : ComeBack();
  if (!status.ok()) Leave(status);
  return status;
}

absl::Status EventFeed::ComeBack() {
  const auto newest = source_.newest();
  if (!newest.ok()) return newest.status();
  MutexLock lock(mutex_);
  refusal_ = absl::OkStatus();
  ++comebacks_;
  newest_ = *newest;
  return absl::OkStatus();
}

void EventFeed::Leave(const absl::Status& why) {
  MutexLock lock(mutex_);
  refusal_ = why;
  for (const Follower& follower : followers_) follower.stream->End();
  followers_.clear();
}

absl::Status EventFeed::refusal() const {
  MutexLock lock(mutex_);
  return refusal_;
}

absl::Status EventFeed::standing() const {
  absl::Status why = refusal();
  return IsAway(why) ? why : absl::OkStatus();
}

int64_t EventFeed::comebacks() const {
  MutexLock lock(mutex_);
  return comebacks_;
}

absl::Status EventFeed::HandOut(Duration wait) {
  const std::vector<Follower> behind = Behind();
  int64_t newest = 0;
  {
    MutexLock lock(mutex_);
    newest = newest_;
  }
  SIDING_ASSIGN_OR_RETURN(const FeedPart part, source_.read(newest, behind.empty() ? wait : Duration(0)));
  const std::string text = TextOf(part);
  {
    MutexLock lock(mutex_);
    for (Follower& follower : followers_) {
      if (follower.after != newest_) continue;
      follower.after = part.next;
      if (!text.empty()) follower.stream->Write(text);
    }
    newest_ = part.next;
    Forget();
  }
  const Time began = clock_.Now();
  for (const Follower& follower : behind) {
    SIDING_RETURN_IF_ERROR(CatchUp(follower));
    if (clock_.Now() - began >= kBehindFor) break;
  }
  return Beat();
}

std::vector<EventFeed::Follower> EventFeed::Behind() const {
  std::vector<Follower> behind;
  MutexLock lock(mutex_);
  for (const Follower& follower : followers_) {
    if (behind.size() == kBehindAtOnce) break;
    if (follower.after < newest_ && !follower.stream->HasEnded() && follower.stream->Unread() < kUnreadAhead)
      behind.push_back(follower);
  }
  return behind;
}

absl::Status EventFeed::CatchUp(const Follower& follower) {
  int64_t newest = 0;
  {
    MutexLock lock(mutex_);
    newest = newest_;
  }
  auto read = source_.read(follower.after, Duration(0));
  if (absl::IsUnavailable(read.status()) || absl::IsCancelled(read.status())) return read.status();
  if (!read.ok()) {
    follower.stream->End();  // too late, or refused: what this one asks for is its own, and not the others'
    return absl::OkStatus();
  }
  FeedPart& part = *read;
  // What is newer comes with the next part for all.
  std::erase_if(part.events, [newest](const FeedEvent& event) { return event.seq > newest; });
  // Nothing is left of what was there: it is as far as the others.
  part.next = part.next <= follower.after ? newest : std::min(part.next, newest);
  follower.stream->Write(absl::StrCat(TextOf(part), Mark(part.next)));
  MutexLock lock(mutex_);
  const auto found = std::find_if(followers_.begin(), followers_.end(),
                                  [&](const Follower& other) { return other.stream == follower.stream; });
  if (found == followers_.end()) return absl::OkStatus();
  found->after = part.next;
  std::rotate(found, found + 1, followers_.end());
  return absl::OkStatus();
}

// Beside the sign of life this finds out which readers have gone. It is the source's: the stream of one that
// hangs does not end, and is as one in which nothing happens.
absl::Status EventFeed::Beat() {
  if (clock_.Now() - last_beat_ < kBeat) return absl::OkStatus();
  if (source_.here && followers() > 0) {
    if (absl::Status status = source_.here(); IsAway(status)) return status;
  }
  last_beat_ = clock_.Now();
  MutexLock lock(mutex_);
  for (const Follower& follower : followers_) {
    if (follower.after == newest_) follower.stream->Write(Mark(newest_));
  }
  return absl::OkStatus();
}

void EventFeed::Forget() {
  const Time now = clock_.Now();
  std::erase_if(followers_, [&](const Follower& follower) {
    if (now - follower.since >= longest_) follower.stream->End();
    return follower.stream->HasEnded();
  });
}

void EventFeed::End() {
  MutexLock lock(mutex_);
  ended_ = true;
  for (const Follower& follower : followers_) follower.stream->End();
  followers_.clear();
}

size_t EventFeed::followers() const {
  MutexLock lock(mutex_);
  return static_cast<size_t>(std::count_if(followers_.begin(), followers_.end(),
                                           [](const Follower& one) { return !one.stream->HasEnded(); }));
}

}  // namespace siding::page
