#include "common/fault.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/status.h"
#include "common/units.h"

namespace siding {
namespace {

constexpr char kDelay[] = "delay=";
constexpr char kHold[] = "hold=";
constexpr std::chrono::milliseconds kLookForFile{10};

enum class Kind { kKill, kError, kDelay, kHold, kKillCriu };

struct Armed {
  const fault::Point* point = nullptr;
  Kind kind = Kind::kKill;
  Duration delay{0};
  std::string file;  // of a hold
  int nth = 1;
  std::string text;  // as it was asked for
  std::atomic<int> reached{0};
};

constinit const fault::Point* first = nullptr;  // of the points of this program; made before main()
std::deque<Armed> all;                          // constant while fault::armed is set, but for the counts
std::string once_file;
thread_local pid_t criu = 0;

const fault::Point* Find(const std::string& name) {
  const fault::Point* point = first;
  while (point != nullptr && name != point->name) point = point->next;
  return point;
}

std::string KindsOf(const fault::Point& point) {
  switch (point.kinds) {
    case FaultKinds::kNoError:
      return "kill,delay";
    case FaultKinds::kAny:
      return "kill,error,delay";
    case FaultKinds::kAnyWithCriu:
      return "kill,error,delay,kill-criu";
  }
  return "";
}

absl::Status ParseKind(const std::string& text, Armed& armed) {
  const FaultKinds kinds = armed.point->kinds;
  if (text == "kill") {
    armed.kind = Kind::kKill;
  } else if (text == "error" && kinds != FaultKinds::kNoError) {
    armed.kind = Kind::kError;
  } else if (text == "kill-criu" && kinds == FaultKinds::kAnyWithCriu) {
    armed.kind = Kind::kKillCriu;
  } else if (text.rfind(kDelay, 0) == 0) {
    armed.kind = Kind::kDelay;
    const auto delay = ParseDuration(text.substr(sizeof kDelay - 1));
    if (!delay.ok()) return delay.status();
    armed.delay = *delay;
  } else if (text.rfind(kHold, 0) == 0 && text.size() > sizeof kHold - 1) {
    armed.kind = Kind::kHold;
    armed.file = text.substr(sizeof kHold - 1);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected one of ", KindsOf(*armed.point), ",hold=FILE"));
  }
  return absl::OkStatus();
}

// "NAME=KIND" or "NAME=KIND@N". A point that is in one of the `others` is left to them.
absl::Status ParseFault(const std::string& text, const std::vector<std::string>& others) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string program = name.substr(0, name.find('.'));
  const fault::Point* const point = Find(name);
  if (point == nullptr && std::find(others.begin(), others.end(), program) != others.end())
    return absl::OkStatus();
  if (point == nullptr || equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "': expected POINT=KIND with a point that --fault-points lists"));
  }
  const size_t at = text.rfind('@');
  Armed& armed = all.emplace_back();
  armed.point = point;
  armed.text = text;
  if (at != std::string::npos && (!absl::SimpleAtoi(text.substr(at + 1), &armed.nth) || armed.nth < 1))
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': expected a positive number behind the @"));
  return Annotate(ParseKind(text.substr(equals + 1, at == std::string::npos ? at : at - equals - 1), armed),
                  name);
}

// True if this process is the one in which it fires.
bool Claim() {
  if (once_file.empty()) return true;
  return UniqueFd(open(once_file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).valid();
}

absl::Status Fire(const Armed& armed) {
  spdlog::warn("fault: {}: {}", armed.text, armed.point->what);
  spdlog::default_logger()->flush();
  switch (armed.kind) {
    case Kind::kKill:
      kill(getpid(), SIGKILL);
      break;
    case Kind::kKillCriu:
      if (criu > 0) kill(criu, SIGKILL);
      break;
    case Kind::kDelay:
      std::this_thread::sleep_for(armed.delay);
      break;
    case Kind::kHold:
      while (access(armed.file.c_str(), F_OK) != 0) std::this_thread::sleep_for(kLookForFile);
      break;
    case Kind::kError:
      return absl::InternalError(absl::StrCat("fault: ", armed.point->name));
  }
  return absl::OkStatus();
}

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

namespace fault {

Point::Point(const char* text, FaultKinds kinds)
    : name(text, strcspn(text, ":")), what(text + name.size() + 2), kinds(kinds), next(first) {
  first = this;
}

absl::Status Point::Reach() const {
  for (Armed& candidate : all) {
    if (candidate.point == this && ++candidate.reached == candidate.nth && Claim()) return Fire(candidate);
  }
  return absl::OkStatus();
}

}  // namespace fault

absl::Status ArmFaults(const std::vector<std::string>& others) {
  return ArmFaults(Variable("SIDING_FAULT"), Variable("SIDING_FAULT_ONCE"), others);
}

absl::Status ArmFaults(const std::string& faults, const std::string& once,
                       const std::vector<std::string>& others) {
  fault::armed = false;
  all.clear();
  once_file = once;
  for (const auto& text : absl::StrSplit(faults, ',', absl::SkipEmpty())) {
    SIDING_RETURN_IF_ERROR(Annotate(ParseFault(std::string(text), others), "SIDING_FAULT"));
  }
  for (const Armed& armed : all) spdlog::warn("this process will fail: {} is armed", armed.text);
  fault::armed = !all.empty();
  return absl::OkStatus();
}

std::string ListFaultPoints() {
  std::map<std::string, std::string> lines;
  for (const fault::Point* point = first; point != nullptr; point = point->next)
    lines[point->name] = absl::StrCat(point->name, "\t", KindsOf(*point), "\t", point->what, "\n");
  std::string text;
  for (const auto& [name, line] : lines) text += line;
  return text;
}

CriuOfThisThread::CriuOfThisThread(pid_t pid) { criu = pid; }
CriuOfThisThread::~CriuOfThisThread() { criu = 0; }

}  // namespace siding
