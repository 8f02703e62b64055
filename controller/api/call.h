// A call, whichever way it came: what the service knows of its caller, and needs of him.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "controller/identity/user.h"

namespace siding {

// Nobody's number: of those who may connect without saying who they are. They are refused without a word in
// the log: it could not say whom, and what they read is asked for again and again.
constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();

// A call whose request has come.
struct ApiCall {
  UserIdentity identity;  // whose it is
  // Its caller has gone, or is not waited for any more. Asked on the thread of the call.
  std::function<bool()> cancelled = [] { return false; };
};

// Takes the answer to a call part by part, and blocks while its caller does not read. False: he has gone.
template <class Part>
using Sink = std::function<bool(const Part&)>;

}  // namespace siding
