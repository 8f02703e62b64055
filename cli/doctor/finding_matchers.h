// For tests: what a finding is and says.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "gmock/gmock.h"

namespace siding::cli {

// `problem` and `mend` are parts of its sentences.
inline auto IsFinding(Severity severity, const std::string& about, const std::string& problem,
                      const std::string& mend) {
  return testing::AllOf(testing::Field(&Finding::severity, severity), testing::Field(&Finding::about, about),
                        testing::ResultOf("problem", ProblemOf, testing::HasSubstr(problem)),
                        testing::ResultOf("mend", MendOf, testing::HasSubstr(mend)));
}
inline auto IsFaultOf(const std::string& about, const std::string& problem, const std::string& mend) {
  return IsFinding(Severity::kFault, about, problem, mend);
}
inline auto IsWarningOf(const std::string& about, const std::string& problem, const std::string& mend) {
  return IsFinding(Severity::kWarning, about, problem, mend);
}

}  // namespace siding::cli
