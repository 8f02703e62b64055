#include "controller/platform/kubernetes/client/status_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace siding::kubernetes {

std::string TimeText(Time time) {
  return absl::StrCat(absl::StripSuffix(FormatTime(std::chrono::ceil<std::chrono::seconds>(time)), ".000Z"),
                      "Z");
}

bool HasCondition(const Json& object, absl::string_view type) {
  const Json& conditions = ListAt(object, {"status", "conditions"});
  return std::any_of(conditions.begin(), conditions.end(), [&](const Json& condition) {
    return TextAt(condition, {"type"}) == type && TextAt(condition, {"status"}) == "True";
  });
}

Json StatusIn(const Json& object) {
  const Json* status = Find(object, {"status"});
  return status != nullptr && status->is_object() ? *status : Json::object();
}

std::optional<Json> StatusPatch(const Json& object, const std::string& version, const Json& status) {
  const Json before = StatusIn(object);
  if (before == status) return std::nullopt;
  Json change = Json::object();
  for (const auto& [field, value] : status.items()) {
    if (!before.contains(field) || before[field] != value) change[field] = value;
  }
  for (const auto& [field, value] : before.items()) {
    if (!status.contains(field)) change[field] = nullptr;
  }
  return Json{{"metadata", {{"resourceVersion", version}}}, {"status", std::move(change)}};
}

}  // namespace siding::kubernetes
