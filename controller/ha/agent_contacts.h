// Which agents ask controllers that stand by. One that stands by writes it beside the journal, and the active
// one reads it there: agents that ask in vain elsewhere have lost the way to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/ids.h"
#include "common/mutex.h"

namespace siding {

// How often, by (process that stood by, node). Only that a number has grown means something.
using AgentContacts = std::map<std::pair<std::string, NodeId>, int64_t>;

// What one controller that stands by says. Thread-safe.
class AgentContactsFile {
 public:
  // `address`: where this controller serves, the same for each of its starts, so that there is one file of
  // its own.
  AgentContactsFile(const std::string& journal, const std::string& address);
  ~AgentContactsFile();  // takes it back

  void Count(const NodeId& node);
  // If there is something new; a failure is tried again at the next call.
  absl::Status Write();

 private:
  const std::string path_, process_;
  Mutex mutex_;
  std::map<NodeId, int64_t> times_ ABSL_GUARDED_BY(mutex_);
  bool fresh_ ABSL_GUARDED_BY(mutex_) = false;
};

// All that is said there. What cannot be read says nothing.
AgentContacts ReadAgentContacts(const std::string& journal);

}  // namespace siding
