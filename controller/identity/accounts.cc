#include "controller/identity/accounts.h"

#include <pwd.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

constexpr size_t kEntrySize = 16384;

}  // namespace

std::string UserName(uint32_t uid) {
  std::vector<char> buffer(kEntrySize);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return absl::StrCat("uid:", uid);
}

absl::StatusOr<UserIdentity> AccountOf(const std::string& user) {
  std::vector<char> buffer(kEntrySize);
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat("user ", user,
                                                    " has no account on the controller's machine",
                                                    error == 0 ? "" : " that could be looked up"));
  }
  if (found->pw_uid == 0 && user != "root") {
    return absl::PermissionDeniedError(absl::StrCat("user ", user, " is root by another name"));
  }
  return UserIdentity{found->pw_uid, found->pw_gid, found->pw_name};
}

}  // namespace siding
