// Tells whether the network has parted the active controller from its nodes while one that stands by still
// reaches them. Then the active one runs and has the journal, but can order nothing. Pure; not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/units.h"
#include "controller/ha/agent_contacts.h"

namespace siding {

class PartitionDetector {
 public:
  // An agent that was refused elsewhere dials us at once. From one that could, something would have been
  // heard by then.
  static constexpr Duration kSilence = std::chrono::milliseconds(1500);
  // Who lives, and reaches no active controller, asks again within seconds.
  static constexpr Duration kForgotten = std::chrono::seconds(30);
  // After a start: agents look for their controller, and ask whichever is next in their lists.
  static constexpr Duration kSettle = std::chrono::seconds(10);

  // What this controller knows of a node itself.
  struct Contact {
    bool connected = false;  // as far as can be seen from here
    Time last;               // that anything came from there
  };

  explicit PartitionDetector(Time start) : start_(start) {}

  // To be called about twice a second, with all that is known. Returns the nodes that ask others and were not
  // heard since they began to, if nobody is left whom this controller reaches; empty: all is well, or nothing
  // is known.
  std::vector<NodeId> Update(const AgentContacts& asked, const std::map<NodeId, Contact>& heard, Time now);

 private:
  const Time start_;
  std::optional<AgentContacts> seen_;
  struct Asking {
    Time since, last;
  };
  std::map<NodeId, Asking> elsewhere_;  // not heard since they asked others first
};

}  // namespace siding
