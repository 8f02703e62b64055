#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
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

// Seen in every run without CAP_SYS_RESOURCE, or says nothing but that another part has ended.
bool IsHarmless(const std::string& message) {
  return Has(message, "etup RLIMIT_NOFILE") || absl::StartsWith(message, "Dumping FAILED") ||
         absl::StartsWith(message, "Restoring FAILED") || Has(message, "cgroupd: recv req error");
}

// CRIU ends its lines with the words of errno.
template <size_t n>
bool EndsWithOneOf(const std::string& message, const int (&errors)[n]) {
  return std::any_of(std::begin(errors), std::end(errors),
                     [&](int error) { return absl::EndsWith(message, std::strerror(error)); });
}

bool BlamesAFile(const std::string& message) {
  return EndsWithOneOf(message, {ENOENT, EACCES, ENOTDIR, ELOOP});
}

// Errors of the node, and of mounts and addresses that are there or not: a restore may meet any of them,
// whatever the image.
bool BlamesWhatIsAround(const std::string& message) {
  if (EndsWithOneOf(message,
                    {ENOMEM,  ENOSPC,   EDQUOT,  EIO,    EAGAIN,      EMFILE,       ENFILE,     EBUSY,
                     EINTR,   ENODEV,   ENXIO,   EEXIST, EROFS,       ETIMEDOUT,    EADDRINUSE, EADDRNOTAVAIL,
                     ENOBUFS, ENETDOWN, ETXTBSY, EPERM,  ENETUNREACH, EHOSTUNREACH, ESTALE}))
    return true;
  // A file of another size, mode or build; a process that was ended by the kernel for want of memory, or by
  // somebody; a pseudo-terminal whose number somebody else has.
  return Has(message, " has bad ") || Has(message, "killed by signal 9") ||
         Has(message, "with specified index");
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
  bool around = false, file = false;
  ForEachError(log, [&](const std::string& message) {
    if (auto refusal = KnownRefusal(message)) known = std::move(refusal);
    around |= BlamesWhatIsAround(message);
    file |= BlamesAFile(message);
  });
  if (!known) {
    const std::string errors = LastErrors(log, static_cast<size_t>(count));
    known = CriuRefusal{errors.empty() ? "" : "criu: " + errors};
  }
  known->around = around;
  known->file = file;
  return *known;
}

bool SaysFull(const std::string& why) {
  return Has(why, std::strerror(ENOSPC)) || Has(why, std::strerror(EDQUOT));
}

}  // namespace siding
