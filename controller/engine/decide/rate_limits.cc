#include "controller/engine/decide/rate_limits.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

constexpr double kHour = 3600;
constexpr double kBytesPerMiB = 1024.0 * 1024.0;

// "max_requests_per_hour: 2": what the policy says, and when there is room for `more` again.
absl::Status Exhausted(const std::string& what, const std::string& field, int most, double over,
                       double each_hour) {
  const auto seconds = static_cast<int64_t>(std::ceil(over / each_hour * kHour));
  return absl::ResourceExhaustedError(absl::StrCat("you have asked for ", what,
                                                   " than the site's policy allows (", field, ": ", most,
                                                   "); ask again in ", std::max<int64_t>(1, seconds), "s"));
}

}  // namespace

size_t BytesOf(const JobSpec& spec) {
  size_t bytes = spec.name.size() + spec.workdir.size() + spec.output.size();
  for (const std::string& word : spec.command) bytes += word.size() + 1;
  for (const auto& [name, value] : spec.env) bytes += name.size() + value.size() + 2;
  for (const auto& [name, value] : spec.labels) bytes += name.size() + value.size() + 2;
  if (spec.app) {
    bytes += spec.app->marker.size();
    for (const std::string& word : spec.app->restart_command) bytes += word.size() + 1;
  }
  return bytes;
}

void RateLimits::Refill(Used& used, const Policy& policy, Time now) {
  const double hours = std::max(0.0, ToSeconds(now - used.at)) / kHour;
  used.requests = std::max(0.0, used.requests - hours * policy.max_requests_per_hour);
  used.bytes = std::max(0.0, used.bytes - hours * policy.max_request_mib_per_hour * kBytesPerMiB);
  used.at = now;
}

absl::Status RateLimits::Take(uint32_t uid, size_t bytes, const Policy& policy, Time now) {
  if (users_.size() >= kMostKept) {
    for (auto user = users_.begin(); user != users_.end();) {
      Refill(user->second, policy, now);
      const bool full = user->second.requests == 0 && user->second.bytes == 0;
      user = full ? users_.erase(user) : std::next(user);
    }
  }
  Used& used = users_.try_emplace(uid, Used{0, 0, now}).first->second;
  Refill(used, policy, now);
  const double requests = used.requests + 1 - policy.max_requests_per_hour;
  const double too_long =
      used.bytes + static_cast<double>(bytes) - policy.max_request_mib_per_hour * kBytesPerMiB;
  if (requests > 0) {
    ++refused_;
    return Exhausted("more", "max_requests_per_hour", policy.max_requests_per_hour, requests,
                     policy.max_requests_per_hour);
  }
  if (too_long > 0) {
    ++refused_;
    return Exhausted("more bytes", "max_request_mib_per_hour", policy.max_request_mib_per_hour, too_long,
                     policy.max_request_mib_per_hour * kBytesPerMiB);
  }
  used.requests += 1;
  used.bytes += static_cast<double>(bytes);
  return absl::OkStatus();
}

}  // namespace siding
