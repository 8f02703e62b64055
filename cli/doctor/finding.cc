#include "cli/doctor/finding.h"

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace siding::cli {

std::string ProblemOf(const Finding& finding) { return finding.problem + finding.when; }

std::string MendOf(const Finding& finding) {
  absl::string_view node = finding.about;
  if (!absl::ConsumePrefix(&node, "node ")) return finding.mend;
  return absl::StrReplaceAll(finding.mend, {{"NODE", node}});
}

}  // namespace siding::cli
