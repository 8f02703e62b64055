// The room in a tier, looked at regularly.
#pragma once

#include <functional>

#include "agent/node/regular_look.h"
#include "common/units.h"

namespace siding {

// Thread-safe.
class TierWatch {
 public:
  // What was seen longer ago than this says nothing any more: the next look hangs.
  static constexpr Duration kOldest = std::chrono::seconds(30);

  // `look` returns the tier's free space, 0 if it is away; see RegularLook.
  TierWatch(std::function<Bytes()> look, const Clock& clock)
      : look_(
            std::move(look), [](const Bytes&) { return Duration(std::chrono::seconds(1)); }, clock) {}

  // Never blocks. 0 if the tier is away, or does not answer.
  Bytes free() const { return look_.Newest(kOldest).value_or(Bytes{0}); }

 private:
  RegularLook<Bytes> look_;
};

}  // namespace siding
