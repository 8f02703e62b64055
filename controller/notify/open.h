// From the configuration to those who are told.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "controller/notify/notifier.h"
#include "controller/notify/settings.h"

namespace siding {

struct NotifyContext {
  EventSource source;
  std::string cluster;  // the journal's name, which calls have in them
  std::string folder;   // where it is kept how far each has been told; made if missing
  const Clock& clock;   // the machine's, for receivers on others; outlives them
};

// Reads the files that they name, and tells nobody. The error names the receiver.
absl::Status CheckReceivers(const std::vector<ReceiverSettings>& receivers, const Clock& clock);

// Begins to tell them. What is wrong with one is logged, and tried again.
std::vector<std::unique_ptr<Notifier>> StartNotifiers(const std::vector<ReceiverSettings>& receivers,
                                                      const NotifyContext& context);

}  // namespace siding
