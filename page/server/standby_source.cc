#include "page/server/standby_source.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace siding::page {
namespace {

constexpr char kActive[] = "siding/active-controller";

}  // namespace

absl::Status StandsBy(const ActiveController& active) {
  absl::Status status =
      absl::UnavailableError(absl::StrCat("this controller stands by; the active one is ", active.name));
  const nlohmann::json json{
      {"name", active.name}, {"host", active.host}, {"page", active.page}, {"is_here", active.is_here}};
  status.SetPayload(kActive, absl::Cord(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  return status;
}

std::optional<std::string> ActiveIn(const absl::Status& error) {
  const auto payload = error.GetPayload(kActive);
  return payload ? std::optional(std::string(*payload)) : std::nullopt;
}

void StandbySource::SetActive(ActiveController active) {
  MutexLock lock(mutex_);
  active_ = std::move(active);
}

absl::Status StandbySource::Refusal() const {
  MutexLock lock(mutex_);
  return StandsBy(active_);
}

}  // namespace siding::page
