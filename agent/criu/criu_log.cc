#include <deque>
#include <functional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "agent/criu/criu.h"

namespace siding {
namespace {

bool Has(const std::string& message, const char* text) { return absl::StrContains(message, text); }

// Says only that what the lines before it say was too much.
bool SumsUp(const std::string& message) {
  return Has(message, "Unable to open fd=") || Has(message, " exited, status=");
}

// Seen in every run without CAP_SYS_RESOURCE, or says nothing.
bool IsHarmless(const std::string& message) {
  return Has(message, "etup RLIMIT_NOFILE") || absl::StartsWith(message, "Dumping FAILED") ||
         absl::StartsWith(message, "Restoring FAILED");
}

// Options of CRIU's command line are none of siding's.
bool IsAdvice(const std::string& message) { return Has(message, " --"); }

// What each line with an error says, without time and source position.
void ForEachError(const std::string& log, const std::function<void(const std::string&)>& visit) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("Error (");
    if (at == std::string::npos) continue;
    const size_t text = line.find("): ", at);
    const std::string message = text == std::string::npos ? line.substr(at) : line.substr(text + 3);
    if (!IsHarmless(message)) visit(message);
  }
}

std::string LastErrors(const std::string& log, size_t count) {
  std::deque<std::string> errors;
  ForEachError(log, [&](const std::string& message) {
    if (IsAdvice(message) || (!errors.empty() && SumsUp(message))) return;
    errors.push_back(message);
    if (errors.size() > count) errors.pop_front();
  });
  return absl::StrJoin(errors, "; ");
}

}  // namespace

CriuRefusal WhyCriuFailed(const std::string& log, int count) {
  // The last: what comes before it did not stop CRIU.
  std::optional<CriuRefusal> known;
  ForEachError(log, [&](const std::string& message) {
    if (auto refusal = KnownRefusal(message)) known = std::move(refusal);
  });
  if (known) return *known;
  const std::string errors = LastErrors(log, static_cast<size_t>(count));
  return {errors.empty() ? "" : "criu: " + errors};
}

}  // namespace siding
