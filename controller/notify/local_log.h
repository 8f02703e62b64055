// Events for the log of this machine, each with fields: journald's, by which it can be asked for them, or
// syslog's, in its text.
#pragma once

#include <memory>
#include <string>

#include "controller/notify/receiver.h"
#include "controller/notify/settings.h"

namespace siding {

inline constexpr char kJournaldSocket[] = "/run/systemd/journal/socket";
inline constexpr char kSyslogSocket[] = "/dev/log";

// What is sent for one event.
std::string JournaldEntry(const v1::Event& event);
std::string SyslogLine(const v1::Event& event);

// Each event is a datagram to the socket, which is opened for each call: the log may be started again. `kind`
// is one of the two.
std::unique_ptr<Receiver> NewLocalLog(EventLogKind kind, std::string socket);

}  // namespace siding
