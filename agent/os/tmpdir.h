// The folder for a task's temporary files; names.h says what it is called.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "agent/os/account.h"

namespace siding {

// Makes `path`, of the user's alone. One of the user's that is there stays as it is. All users write to /tmp,
// and its names can be guessed: what another user has put there is moved aside, for its owner to find.
absl::Status MakeUserFolder(const std::string& path, uid_t uid, gid_t gid);

// Gives it the name `aside`, in the same folder, so that its own is free. As its user, and without a look at
// what it is or has in it, which may be a file system that does not answer. kNotFound: it is not there.
absl::Status MoveUserFolder(const std::string& path, const std::string& aside, uid_t uid, gid_t gid);

// Removes it with all that is in it, as its user: who has put other things in its place loses what is his
// own.
void RemoveUserFolder(const std::string& path, const Account& account);

}  // namespace siding
