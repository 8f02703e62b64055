// A controller that is not the one: waits until it may be, and tells whoever asks which one is.
#pragma once

#include <csignal>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "controller/config.h"
#include "controller/journal/journal.h"
#include "controller/journal/lease.h"

namespace siding {

// What is told of the active one besides, such as by the page. Made when this one begins to stand by.
class StandbyView {
 public:
  virtual ~StandbyView() = default;
  // `is_here`: it is on this machine.
  virtual void SetHolder(const LeaseRecord& holder, bool is_here) = 0;
};
using MakeStandbyView = std::function<std::unique_ptr<StandbyView>()>;

// Returns when the journal is this process's, or with nullptr when one of `stop` (blocked signals; SIGHUP
// does not count) has come. Without config.standby: kFailedPrecondition, with the holder's name, if there is
// one that lives; and kUnavailable if a silent one on this machine, stopped in the middle of a write, had the
// database locked: it has been ended, so the next start succeeds. The lease must outlive the journal.
absl::StatusOr<std::unique_ptr<Journal>> AwaitJournal(const ControllerConfig& config, Lease& lease,
                                                      const sigset_t& stop, const MakeStandbyView& make_view);

}  // namespace siding
