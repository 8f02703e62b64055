// Who is told of events, as the configuration says (docs/admin/events.md).
#pragma once

#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/units.h"

namespace siding {

enum class EventLogKind : uint8_t { kNone, kJournald, kSyslog };

struct ReceiverSettings {
  std::string name;       // in logs, metrics, and of the file that says how far it has come
  std::string url;        // of a webhook; or `log`
  std::string secret;     // file with the key that its calls are signed with
  std::string authority;  // file of certificates, PEM; empty: those that the machine believes
  EventLogKind log = EventLogKind::kNone;
  std::set<std::string> kinds;  // of events; empty: all
};

// By itself; no file is read. kInvalidArgument names the field, and what was expected.
absl::Status Check(const ReceiverSettings& settings);

}  // namespace siding
