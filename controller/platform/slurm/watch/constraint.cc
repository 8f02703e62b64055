#include "controller/platform/slurm/watch/constraint.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siding::slurm {

absl::StatusOr<Constraint> Constraint::Parse(const std::string& text) {
  Constraint constraint;
  constraint.all_ = text.find('|') == std::string::npos;
  const bool both = !constraint.all_ && text.find('&') != std::string::npos;
  if (both || text.find_first_of("[]()*,") != std::string::npos) {
    return absl::UnimplementedError(absl::StrCat(
        "--constraint=", text, ": a deadline can be planned with features joined by & or by | only"));
  }
  constraint.wanted_ = absl::StrSplit(text, constraint.all_ ? '&' : '|', absl::SkipEmpty());
  return constraint;
}

bool Constraint::MetBy(const std::vector<std::string>& features) const {
  const auto has = [&](const std::string& feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  return all_ ? std::all_of(wanted_.begin(), wanted_.end(), has)
              : std::any_of(wanted_.begin(), wanted_.end(), has);
}

}  // namespace siding::slurm
