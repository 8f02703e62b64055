// Events to pages that follow them, as server-sent events: the journal's sequence is the id, so that a page
// that comes back says where it was. Each event is encoded once for all that are up to date. Whoever does not
// read is dropped, and nobody waits for him.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/units.h"
#include "page/server/byte_stream.h"

namespace siding::page {

struct FeedEvent {
  int64_t seq = 0;
  std::string json;  // one line
};
// Of what is in the journal, with gaps: not everything is for everybody's eyes.
struct FeedPart {
  std::vector<FeedEvent> events;
  int64_t next = 0;   // the part after it follows on this one's sequence
  bool more = false;  // there is another one already
};

// Of an error: whoever was asked does not answer, to this question or to another one.
bool IsAway(const absl::Status& status);

// Thread-safe, but for Turn().
class EventFeed {
 public:
  // An error: whoever is asked is away, or refuses.
  struct Source {
    std::function<absl::StatusOr<int64_t>()> newest;
    // What follows on `after`; waits for the first event up to `wait`.
    std::function<absl::StatusOr<FeedPart>(int64_t after, Duration wait)> read;
    // Whether it is there, when it tells nothing. Asked before a beat; none: it is there as long as this is.
    std::function<absl::Status()> here;
  };
  // Unread by one page: it is dropped.
  static constexpr size_t kMostUnread = 1 << 20;
  // Of these so much is to have been read before a page that catches up gets the next part.
  static constexpr size_t kUnreadAhead = 64 << 10;
  static constexpr Duration kBeat = std::chrono::seconds(15);
  // Of those that are behind, so many get a part in a turn: each part is a reading of its own.
  static constexpr size_t kBehindAtOnce = 4;
  // And no more of them once their parts have taken that long: the others wait meanwhile.
  static constexpr Duration kBehindFor = std::chrono::seconds(1);

  // `clock` must outlive it. `longest`: a follower is dropped then, however well he reads.
  EventFeed(Source source, const Clock& clock, Duration longest = Duration::max());

  // The events after that one; none: from now on. One that is not there yet stands for the newest. It ends
  // at once where none are told, see refusal().
  std::shared_ptr<ByteStream> Follow(std::optional<int64_t> after);
  // The next part for all that are up to date, then one each for some of those that are behind; waits up to
  // `wait` if nobody is. To be called again and again. An error: as refusal() has it.
  absl::Status Turn(Duration wait);
  // The source is away, or refuses its events: all followers are dropped, so that they know, and come back
  // when it tells them again, which a later turn finds out.
  void Leave(const absl::Status& why);
  // OK, or why no events are told: the source is away, or it is there and refuses them.
  absl::Status refusal() const;
  // OK, or why the source is away: it answers no question either.
  absl::Status standing() const;
  // How often it has come to be there. What it said before is not what it says now.
  int64_t comebacks() const;
  void End();

  size_t followers() const;  // that have not gone
  // Somebody has not been handed all that there is, and reads: the next turn is not to wait.
  bool IsSomebodyBehind() const { return !Behind().empty(); }

 private:
  struct Follower {
    std::shared_ptr<ByteStream> stream;
    int64_t after = 0;
    Time since{};
  };

  absl::Status ComeBack();
  absl::Status HandOut(Duration wait);
  // Those that are to get a part; those first who have waited longest for one.
  std::vector<Follower> Behind() const;
  absl::Status CatchUp(const Follower& follower);
  absl::Status Beat();
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);  // those that have gone, or are to

  const Source source_;
  const Clock& clock_;
  const Duration longest_;
  Time last_beat_;
  mutable Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  int64_t comebacks_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t newest_ ABSL_GUARDED_BY(mutex_) = 0;  // that has been handed out
  std::vector<Follower> followers_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding::page
