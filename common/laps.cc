#include "common/laps.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace siding {

void Laps::End(absl::string_view step) {
  const auto now = std::chrono::steady_clock::now();
  const auto took = std::chrono::duration_cast<Duration>(now - std::exchange(began_, now));
  const auto known =
      std::find_if(steps_.begin(), steps_.end(), [&](const auto& one) { return one.first == step; });
  if (known == steps_.end())
    steps_.emplace_back(step, took);
  else
    known->second += took;
}

Duration Laps::Of(absl::string_view step) const {
  for (const auto& [name, took] : steps_) {
    if (name == step) return took;
  }
  return Duration(0);
}

std::string Laps::ToString() const {
  return absl::StrJoin(steps_, ", ", [](std::string* text, const auto& step) {
    absl::StrAppendFormat(text, "%s %.1f ms", step.first, 1000 * ToSeconds(step.second));
  });
}

}  // namespace siding
