// How near the end of a certificate is, and what people are told of it.
#pragma once

#include <string>

#include "common/units.h"

namespace siding {

enum class Expiry { kFar, kWithinAMonth, kWithinAWeek, kOver };

Expiry HowNear(Time ends, Time now);
// "expires in 6d02h, at 2026-05-01T12:00:00.000Z", or "expired at ..."; empty: it is far.
std::string ExpiryText(Time ends, Time now);

}  // namespace siding
