// Names that a restore creates again.
#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "agent/os/account.h"

namespace siding {

// CRIU binds sockets to their names again, and puts a file that was removed while a process had it under its
// old name for a moment. It does so with the user's rights, so what the user could not make again would be a
// failed restore: it is asked for before a checkpoint instead.
//
// kPermissionDenied says which process has what. Root could make everything. The processes may run; then it
// is what a moment has shown. For root. Thread-safe.
absl::Status CheckRecreatedNames(pid_t init, const Account& user);

}  // namespace siding
