#include "controller/api/reception.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // whether a caller that waits is still there
// A flood of refusals is not to become one of lines.
constexpr int64_t kLinesASecond = 20;

}  // namespace

// Of a call among those that arrive.
class Reception::Place {
 public:
  Place(Reception& reception, uint32_t uid)
      : status(reception.Enter(uid)), reception_(reception), uid_(uid) {}
  ~Place() {
    if (status.ok()) reception_.Leave(uid_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const absl::Status status;

 private:
  Reception& reception_;
  const uint32_t uid_;
};

Reception::Reception(const ServiceLimits& limits, Duration within) : limits_(limits), within_(within) {}

absl::StatusOr<UserIdentity> Reception::Take(Arrival& call, const std::string& method) {
  auto identity = call.Who();
  if (!identity.ok()) {
    Tell(method, absl::StrCat("from ", call.peer()), identity.status());
    return identity;
  }
  const Place place(*this, identity->uid);
  const absl::Status taken = place.status.ok() ? Read(call, identity->uid) : place.status;
  if (taken.ok()) return identity;
  if (!absl::IsCancelled(taken)) Tell(method, absl::StrCat("by user ", identity->user), taken);
  return taken;
}

absl::Status Reception::Read(Arrival& call, uint32_t uid) {
  if (!AwaitTurn(uid, call)) {
    if (call.IsCancelled()) return absl::CancelledError("the caller has gone");
    return absl::ResourceExhaustedError(
        absl::StrCat("you have ", kReadAtOnce, " requests already that are not finished"));
  }
  const Arrival::End end = call.Read(within_);
  EndTurn(uid);
  if (end == Arrival::End::kCame) return absl::OkStatus();
  if (end == Arrival::End::kOver) {
    return absl::DeadlineExceededError(
        absl::StrCat("the request was not there after ", FormatDuration(within_)));
  }
  if (call.IsCancelled()) return absl::CancelledError("the caller has gone");
  return absl::InvalidArgumentError("expected one message, which is this call's request");
}

absl::Status Reception::Enter(uint32_t uid) {
  MutexLock lock(mutex_);
  const auto own = by_user_.find(uid);
  if (uid != 0 && own != by_user_.end() && own->second.all >= limits_.arriving_calls_per_user) {
    return absl::ResourceExhaustedError(
        absl::StrCat("you have ", own->second.all,
                     " requests already that are not finished; limits.arriving_calls_per_user is ",
                     limits_.arriving_calls_per_user));
  }
  const int most = limits_.MostArriving();
  // Some places are root's.
  if (all_ >= (uid == 0 ? most : std::max(1, most - most / 8))) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", all_, " requests already that are not finished; limits.arriving_calls is ", most));
  }
  ++by_user_[uid].all;
  ++all_;
  return absl::OkStatus();
}

void Reception::Leave(uint32_t uid) {
  MutexLock lock(mutex_);
  if (--by_user_[uid].all == 0) by_user_.erase(uid);
  --all_;
}

bool Reception::AwaitTurn(uint32_t uid, const Arrival& call) {
  const auto until = std::chrono::steady_clock::now() + within_;
  MutexLock lock(mutex_);
  // Root is not kept waiting by clients of its own that hang.
  while (uid != 0 && by_user_[uid].read >= kReadAtOnce) {
    if (call.IsCancelled() || std::chrono::steady_clock::now() >= until) return false;
    turn_.WaitFor(mutex_, kLook);
  }
  ++by_user_[uid].read;
  return true;
}

void Reception::EndTurn(uint32_t uid) {
  {
    MutexLock lock(mutex_);
    --by_user_[uid].read;
  }
  turn_.NotifyAll();
}

void Reception::Tell(const std::string& method, const std::string& caller, const absl::Status& why) {
  {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const int64_t second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    MutexLock lock(mutex_);
    if (second != told_second_) {
      if (told_ > kLinesASecond)
        spdlog::warn("{} more calls were refused before they were read", told_ - kLinesASecond);
      told_second_ = second;
      told_ = 0;
    }
    if (++told_ > kLinesASecond) return;
  }
  spdlog::warn("{} {} is refused: {}", method, caller, std::string(why.message()));
}

}  // namespace siding
