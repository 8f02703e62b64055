// Names that a restore makes anew.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "agent/launch/account.h"

namespace siding {

// CRIU binds sockets to their names again and connects to them, puts a file that was removed while a process
// had it under its old name for a moment, fills pipes and watches files. Meanwhile the folders on the way are
// in the hands of the job's user: where one has become a link, root would do all this wherever it leads.
// Nothing can be looked at before it has happened, so only a CRIU that does it with the user's rights may
// restore such a task (CriuTraits).
//
// What there is of the kind: "process 17 (python3) has a socket with a name"; empty: nothing, or the user is
// root. kPermissionDenied: something that its user could not make again. The processes may run; then it is
// what a moment has shown. For root. Thread-safe.
absl::StatusOr<std::string> NamesMadeAnew(pid_t init, const Account& user);

// kFailedPrecondition: there are such names, and this CRIU would make them as root.
absl::Status MayBeMadeAnew(const std::string& names, bool acts_on_files_as_user);

// Sockets that have a name, be it abstract, in a text such as /proc/net/unix: the inode, and the path for one
// that listens at a path.
std::map<std::string, std::string> NamedSockets(const std::string& table);

}  // namespace siding
