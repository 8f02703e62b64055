#include "cli/doctor/site_checks.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "cli/doctor/node_checks.h"
#include "policy/policy_file.h"

namespace siding::cli {
namespace {

// What the fastest of so many measures alone says little of what storage takes from all of them.
constexpr int kManyNodes = 8;
// As for the controller's own warning.
constexpr Duration kClockStep = std::chrono::seconds(1);

int NodesWithSharedTier(const Answers& answers) {
  const auto nodes = HeardNodes(answers);
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(),
                                        [](const auto* node) { return node->shared_disk_free() > 0; }));
}

// By how much the controller's clock is ahead of this machine's, at least: it was read between the two times.
// Below 0: behind.
Duration Ahead(const Answers& answers) {
  if (answers.now() < answers.asked) return answers.now() - answers.asked;
  return std::max(answers.now() - answers.answered, Duration(0));
}

}  // namespace

Findings ControllersAway(const Answers& answers) {
  Findings findings;
  for (const auto& [address, why] : answers.away) {
    findings.push_back(
        {Severity::kWarning, "controller " + address,
         absl::StrCat("it does not answer, and would not take over from the active one: ", why),
         "`systemctl start sidingd` there; its log says why it ended (docs/admin/high-availability.md)"});
  }
  return findings;
}

Findings PolicyProblems(const Answers& answers) {
  if (answers.policy.problem().empty()) return {};
  return {{Severity::kFault, "policy",
           "its file has an error, and what was loaded before stays in force: " + answers.policy.problem(),
           absl::StrCat("mend the file and try it: `sidingctl policy check ", answers.policy.file(),
                        "`; it is loaded as soon as it is good (docs/admin/policies.md)")}};
}

Findings UnknownBandwidth(const Answers& answers) {
  const auto file = ParsePolicyFile(answers.policy.yaml(), "the policy in force");
  const int nodes = NodesWithSharedTier(answers);
  // A newer controller's may have keys that are not known here.
  if (!file.ok() || !file->policy.ProtectsSome() || file->policy.shared_bandwidth > Bytes{} ||
      nodes < kManyNodes)
    return {};
  return {{Severity::kWarning, "policy",
           absl::StrCat(
               "it has jobs checkpointed (most_lost_work), and does not say what shared storage takes from ",
               nodes, " nodes together: what one of them has measured alone bounds them all"),
           "say it in the policy's file: `shared_bandwidth: 40GiB`, for instance (docs/admin/policies.md)"}};
}

Findings Clocks(const Answers& answers) {
  const Duration ahead = Ahead(answers);
  if (answers.site.now_us() == 0 || (ahead < kClockStep && -ahead < kClockStep)) return {};
  const std::string how = absl::StrCat(FormatDuration(ahead < Duration(0) ? -ahead : ahead),
                                       ahead < Duration(0) ? " behind" : " ahead of");
  if (answers.same_machine) {
    return {{Severity::kWarning, "controller",
             absl::StrCat("its time is ", how, " its machine's clock, which was set after its start"),
             "`systemctl restart sidingd`, so that it follows the clock (docs/admin/nodes.md)"}};
  }
  return {{Severity::kWarning, "controller", absl::StrCat("its time is ", how, " the clock of this machine"),
           "set the clock that is wrong; if it was the controller's: `systemctl restart sidingd` "
           "(docs/admin/nodes.md)"}};
}

}  // namespace siding::cli
