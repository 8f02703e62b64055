// Fault points: named steps at which a test can make a process of ours die, fail or stand still.
//
//   SIDING_RETURN_IF_ERROR(FaultAt<"agent.dump.sealed: the image is whole, nobody has been told">());
//
// To name a point is to declare it; while nothing is armed it costs one relaxed load. What is armed comes
// from a daemon's environment at its start, and from nowhere else:
//
//   SIDING_FAULT="agent.dump.sealed=kill@2,journal.commit=delay=3s"
//
//   kill            SIGKILL to this process
//   error           the step fails with kInternal
//   delay=DURATION  the step takes so much longer
//   hold=FILE       the step waits until there is FILE; its name has neither a comma nor an @
//   kill-criu       SIGKILL to the criu that this thread is waiting for
//
// `@N`: the Nth time that the point is reached; else the first. Each fault fires once in a process. With
// SIDING_FAULT_ONCE=FILE it fires in one process only: who makes that file first. Points may be reached on
// any thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace siding {

// What can be made to happen at a point. Everywhere: kill, delay and hold.
enum class FaultKinds { kNoError, kAny, kAnyWithCriu };

// Arms what the environment says; nothing if it says nothing. To be called once, before there are threads and
// after logging is set up. kInvalidArgument for a point or kind that does not exist. `others`: first parts of
// the names of points that are in programs which inherit the environment, or from which it is inherited.
absl::Status ArmFaults(const std::vector<std::string>& others = {});
// The same from a text, in place of what was armed before; `once` as SIDING_FAULT_ONCE, may be empty.
absl::Status ArmFaults(const std::string& faults, const std::string& once,
                       const std::vector<std::string>& others);

// The points of this program, one a line: its name, the kinds that are possible beside hold, what has been
// done there.
std::string ListFaultPoints();

// While it lives, kill-criu on this thread means this process.
class CriuOfThisThread {
 public:
  explicit CriuOfThisThread(pid_t pid);
  ~CriuOfThisThread();
  CriuOfThisThread(const CriuOfThisThread&) = delete;
  CriuOfThisThread& operator=(const CriuOfThisThread&) = delete;
};

namespace fault {

inline std::atomic<bool> armed{false};

class Point {
 public:
  // "NAME: WHAT"; lives as long as the program.
  Point(const char* text, FaultKinds kinds);
  // What is armed for this point happens, if anything is.
  absl::Status Reach() const;

  const std::string name;
  const std::string what;
  const FaultKinds kinds;
  const Point* const next;
};

template <size_t n>
struct Text {
  char text[n];
  consteval Text(const char (&literal)[n]) { std::copy_n(literal, n, text); }  // NOLINT: meant to convert
};

template <Text text, FaultKinds kinds>
inline const Point point{text.text, kinds};

}  // namespace fault

// "NAME: what has been done, or is about to be". A step that can fail continues if this is OK.
template <fault::Text text, FaultKinds kinds = FaultKinds::kAny>
absl::Status FaultAt() {
  const fault::Point& here = fault::point<text, kinds>;
  return fault::armed.load(std::memory_order_relaxed) ? here.Reach() : absl::OkStatus();
}

// The same where this thread waits for criu.
template <fault::Text text>
absl::Status FaultAtCriu() {
  return FaultAt<text, FaultKinds::kAnyWithCriu>();
}

// The same where nothing can fail.
template <fault::Text text>
void FaultHere() {
  FaultAt<text, FaultKinds::kNoError>().IgnoreError();
}

}  // namespace siding
