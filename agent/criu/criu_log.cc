#include <deque>
#include <sstream>

#include "agent/criu/criu.h"

namespace siding {

std::string LastCriuErrors(const std::string& log, int count) {
  std::deque<std::string> errors;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("Error (");
    if (at == std::string::npos) continue;
    const size_t text = line.find("): ", at);
    std::string message = text == std::string::npos ? line.substr(at) : line.substr(text + 3);
    // Seen in every run without CAP_SYS_RESOURCE, or only sums up what the line before it said.
    if (message.find("Setup RLIMIT_NOFILE") != std::string::npos ||
        message.find("setup RLIMIT_NOFILE") != std::string::npos || message.rfind("Dumping FAILED", 0) == 0 ||
        message.rfind("Restoring FAILED", 0) == 0) {
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
