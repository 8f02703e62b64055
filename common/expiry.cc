#include "common/expiry.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

// A month is enough to find out who renews it, a week is not to be left to chance.
constexpr Duration kMonth = std::chrono::hours(24 * 30);
constexpr Duration kWeek = std::chrono::hours(24 * 7);

}  // namespace

Expiry HowNear(Time ends, Time now) {
  if (ends <= now) return Expiry::kOver;
  if (ends - now <= kWeek) return Expiry::kWithinAWeek;
  return ends - now <= kMonth ? Expiry::kWithinAMonth : Expiry::kFar;
}

std::string ExpiryText(Time ends, Time now) {
  switch (HowNear(ends, now)) {
    case Expiry::kFar:
      return "";
    case Expiry::kOver:
      return absl::StrCat("expired at ", FormatTime(ends));
    default:
      return absl::StrCat("expires in ", FormatDuration(ends - now), ", at ", FormatTime(ends));
  }
}

}  // namespace siding
