// A controller that is not the one: waits until it may be, and tells whoever asks which one is.
#pragma once

#include <csignal>
#include <memory>

#include "absl/status/statusor.h"
#include "controller/config.h"
#include "controller/journal/journal.h"
#include "controller/journal/lease.h"

namespace siding {

// Returns when the journal is this process's, or with nullptr when one of `stop` (blocked signals; SIGHUP
// does not count) has come. Without config.standby: kFailedPrecondition, with the holder's name, if there is
// one that lives; and kUnavailable if a silent one on this machine, stopped in the middle of a write, had the
// database locked: it has been ended, so the next start succeeds. The lease must outlive the journal.
absl::StatusOr<std::unique_ptr<Journal>> AwaitJournal(const ControllerConfig& config, Lease& lease,
                                                      const sigset_t& stop);

}  // namespace siding
