// Makes an agent's messages as short as the controller takes them (common/message_limits.h).
#pragma once

#include "siding/v1/agent.pb.h"

namespace siding {

// What is longer than needed is cut: texts, and lists that are told again or only
// for show. False: it is too long all the same, and is not to be sent.
bool Fit(v1::FromAgent& message);

}  // namespace siding
