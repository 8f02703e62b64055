#include <deque>
#include <sstream>

#include "agent/criu/criu.h"

namespace siding {
namespace {

bool Has(const std::string& message, const char* text) { return message.find(text) != std::string::npos; }

// Says only that what the lines before it say was too much.
bool SumsUp(const std::string& message) {
  return Has(message, "Unable to open fd=") || Has(message, " exited, status=");
}

}  // namespace

std::string LastCriuErrors(const std::string& log, int count) {
  std::deque<std::string> errors;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("Error (");
    if (at == std::string::npos) continue;
    const size_t text = line.find("): ", at);
    std::string message = text == std::string::npos ? line.substr(at) : line.substr(text + 3);
    // Seen in every run without CAP_SYS_RESOURCE, or only sums up what the line before it said.
    if (Has(message, "etup RLIMIT_NOFILE") || message.rfind("Dumping FAILED", 0) == 0 ||
        message.rfind("Restoring FAILED", 0) == 0 || (!errors.empty() && SumsUp(message))) {
      continue;
    }
    errors.push_back(message);
    if (static_cast<int>(errors.size()) > count) errors.pop_front();
  }
  std::string joined;
  for (const std::string& error : errors) joined += (joined.empty() ? "" : "; ") + error;
  return joined;
}

}  // namespace siding
