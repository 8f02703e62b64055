// Somebody outside who is told of events.
#pragma once

#include <cstddef>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "siding/v1/api.pb.h"

namespace siding {

// Used by one thread.
class Receiver {
 public:
  struct Told {
    size_t count = 0;  // of the events, from the first on, that it has for good
    absl::Status why;  // why it has no more; OK: it has all
  };
  virtual ~Receiver() = default;
  // It may have more of them than it says: these are told again. `why` says nothing that is secret. A stop
  // request from another thread ends it soon.
  virtual Told Tell(const std::vector<v1::Event>& events, std::stop_token stop) = 0;
};

}  // namespace siding
