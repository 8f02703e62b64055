// What fails is tried again after pauses that grow, each object by itself: what one of them has against it is
// in no other's way. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/errors.h"

namespace siding::kubernetes {

// The server has answered, and will have nothing of this one: the next one may do better. Otherwise the
// server cannot be reached, or is busy, or nothing may be changed at the moment; that is no object's fault.
inline bool IsOfOneObject(const absl::Status& status) {
  return ErrorOf(status).has_value() && !absl::IsUnauthenticated(status) &&
         !absl::IsResourceExhausted(status);
}

class Pauses {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLongest = std::chrono::minutes(2);

  bool Allow(const std::string& what, Time now) const {
    const auto failed = failed_.find(what);
    return failed == failed_.end() || now >= failed->second.again;
  }
  // What came of it. What has been overtaken by another change is no failure.
  void Note(const std::string& what, const absl::Status& status, Time now) {
    if (status.ok()) return Succeed(what);
    if (IsOfOneObject(status) && !absl::IsAborted(status) && !absl::IsNotFound(status)) Fail(what, now);
  }
  void Fail(const std::string& what, Time now) {
    Failed& failed = failed_[what];
    failed.pause = failed.pause == Duration(0) ? kFirst : std::min(2 * failed.pause, kLongest);
    failed.again = now + failed.pause;
  }
  void Succeed(const std::string& what) { failed_.erase(what); }
  // Of what nobody asks for any more.
  void Forget(Time now) {
    std::erase_if(failed_, [&](const auto& one) { return now > one.second.again + kLongest; });
  }

 private:
  struct Failed {
    Duration pause{0};
    Time again;
  };
  std::map<std::string, Failed> failed_;
};

}  // namespace siding::kubernetes
