#include "model/policy.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

constexpr const char* kStrategies[] = {"least-loss", "slurm-preempt", "slurm-youngest-first", "pbs-order",
                                       "kueue-classical"};
constexpr const char* kWhenLate[] = {"refuse", "best-effort", "queue"};
constexpr const char* kAfterWalltime[] = {"end", "preemptible"};

template <typename Enum, size_t N>
absl::StatusOr<Enum> Parse(const char* const (&names)[N], const std::string& name) {
  std::string expected;
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
    absl::StrAppend(&expected, i == 0 ? "" : i + 1 < N ? ", " : " or ", names[i]);
  }
  return absl::InvalidArgumentError(absl::StrCat("expected ", expected, ", got '", name, "'"));
}

}  // namespace

std::string ToString(Strategy strategy) { return kStrategies[static_cast<int>(strategy)]; }
std::string ToString(WhenLate when) { return kWhenLate[static_cast<int>(when)]; }
std::string ToString(AfterWalltime after) { return kAfterWalltime[static_cast<int>(after)]; }
absl::StatusOr<Strategy> ParseStrategy(const std::string& name) { return Parse<Strategy>(kStrategies, name); }
absl::StatusOr<WhenLate> ParseWhenLate(const std::string& name) { return Parse<WhenLate>(kWhenLate, name); }
absl::StatusOr<AfterWalltime> ParseAfterWalltime(const std::string& name) {
  return Parse<AfterWalltime>(kAfterWalltime, name);
}

bool JobMatch::Matches(const JobSpec& spec) const {
  return std::all_of(any_of.begin(), any_of.end(), [&](const auto& rule) {
    const auto& [key, values] = rule;
    if (key == "user") return values.contains(spec.user);
    if (key == "name") return values.contains(spec.name);
    const auto label = spec.labels.find(key);
    return label != spec.labels.end() && values.contains(label->second);
  });
}

int Policy::ClassOf(const JobSpec& spec) const {
  const auto found =
      std::find_if(classes.begin(), classes.end(), [&](const JobClass& c) { return c.match.Matches(spec); });
  return found == classes.end() ? -1 : static_cast<int>(found - classes.begin());
}

Duration Policy::MostLostWork(const JobSpec& spec) const {
  const int its = ClassOf(spec);
  return its < 0 ? most_lost_work : classes[its].most_lost_work.value_or(most_lost_work);
}

double Policy::SharedBandwidth(double measured) const {
  return shared_bandwidth > Bytes{} ? static_cast<double>(shared_bandwidth.value) : measured;
}

bool Policy::ProtectsSome() const {
  return most_lost_work > Duration(0) || std::any_of(classes.begin(), classes.end(), [](const JobClass& c) {
           return c.most_lost_work.value_or(Duration(0)) > Duration(0);
         });
}

const OnDemandRule* Policy::RuleFor(const JobSpec& spec) const {
  const auto found = std::find_if(on_demand.begin(), on_demand.end(),
                                  [&](const OnDemandRule& rule) { return rule.match.Matches(spec); });
  return found == on_demand.end() ? nullptr : &*found;
}

}  // namespace siding
