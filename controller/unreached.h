// Whether the active controller has lost the way to its nodes while one that stands by has it: it runs, it
// has the journal, and yet nobody hears it. Pure; not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/asked.h"

namespace siding {

class Unreached {
 public:
  // An agent that was refused elsewhere dials us at once. From one that could, something would have been
  // heard by then.
  static constexpr Duration kSilence = std::chrono::milliseconds(1500);
  // Who lives, and reaches no active controller, asks again within seconds.
  static constexpr Duration kForgotten = std::chrono::seconds(30);
  // After a start: agents look for their controller, and ask whichever is next in their lists.
  static constexpr Duration kSettle = std::chrono::seconds(10);

  // What this controller knows of a node itself.
  struct Heard {
    bool connected = false;  // as far as can be seen from here
    Time last;               // that anything came from there
  };

  explicit Unreached(Time start) : start_(start) {}

  // To be told of every look, about twice a second. The nodes that ask others and were not heard since they
  // began to, if nobody is left whom this controller reaches; empty: all is well, or nothing is known.
  std::vector<NodeId> Look(const Asked& asked, const std::map<NodeId, Heard>& heard, Time now);

 private:
  const Time start_;
  std::optional<Asked> seen_;
  struct Asking {
    Time since, last;
  };
  std::map<NodeId, Asking> elsewhere_;  // not heard since they asked others first
};

}  // namespace siding
