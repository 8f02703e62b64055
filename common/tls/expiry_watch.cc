#include "common/tls/expiry_watch.h"

#include <chrono>

#include "common/files.h"
#include "common/logging.h"
#include "common/tls/certificates.h"

namespace siding {
namespace {

constexpr Duration kPause = std::chrono::minutes(1);

std::optional<Time> EndOf(const std::string& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) return {};
  const auto ends = EndOfValidity(*text);
  return ends.ok() ? std::optional(*ends) : std::nullopt;
}

}  // namespace

std::optional<Time> ExpiryWatch::Look() {
  if (file_.empty()) return {};
  MutexLock lock(mutex_);
  const Time now = clock_.Now();
  if (looked_ && now - *looked_ < kPause) return ends_;
  looked_ = now;
  ends_ = EndOf(file_);
  const Expiry near = ends_ ? HowNear(*ends_, now) : Expiry::kFar;
  if (near > told_) {
    const auto level = near == Expiry::kWithinAMonth ? spdlog::level::warn : spdlog::level::err;
    spdlog::log(level, "certificate {} {}: renew it", file_, ExpiryText(*ends_, now));
  }
  if (ends_) told_ = near;
  return ends_;
}

}  // namespace siding
