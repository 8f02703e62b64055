// A call, whichever way it came: what the service knows of its caller, and needs of him.
#pragma once

#include <functional>

#include "controller/identity/user.h"

namespace siding {

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
