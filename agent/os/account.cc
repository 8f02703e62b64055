#include "agent/os/account.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace siding {
namespace {

constexpr size_t kEntrySize = 16384;
constexpr int kUsualGroups = 64;

// Of this thread only: the C library's function changes them for all threads of the process.
bool SetThreadGroups(const std::vector<gid_t>& groups) {
  return syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

// setfsuid(2) does not say whether it worked, but what it was before.
bool SetFileIds(uid_t uid, gid_t gid) {
  setfsgid(gid);
  setfsuid(uid);
  return static_cast<gid_t>(setfsgid(static_cast<gid_t>(-1))) == gid &&
         static_cast<uid_t>(setfsuid(static_cast<uid_t>(-1))) == uid;
}

// Those that the thread acts with; what it may raise again stays.
bool SetEffective(const std::array<uint32_t, 2>& effective) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return false;
  for (size_t i = 0; i < effective.size(); ++i) data[i].effective = effective[i];
  return syscall(SYS_capset, &header, data) == 0;
}

std::array<uint32_t, 2> Effective() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data) != 0) return {};
  return {data[0].effective, data[1].effective};
}

}  // namespace

Account AccountOf(uid_t uid, gid_t gid) {
  Account account{uid, gid, "", "/", {gid}};
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kEntrySize);
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return account;
  account.name = found->pw_name;
  account.home = found->pw_dir;
  int count = kUsualGroups;
  std::vector<gid_t> groups(count);
  if (getgrouplist(found->pw_name, gid, groups.data(), &count) < 0) {
    groups.resize(count);
    if (getgrouplist(found->pw_name, gid, groups.data(), &count) < 0) return account;
  }
  groups.resize(count);
  account.groups = groups;
  return account;
}

FilesAsUser::FilesAsUser(const Account& account) {
  if (geteuid() != 0) {
    ok_ = account.uid == geteuid();
    return;
  }
  groups_.resize(getgroups(0, nullptr));
  groups_.resize(getgroups(static_cast<int>(groups_.size()), groups_.data()));
  effective_ = Effective();
  changed_ = true;
  // The capabilities last: groups and ids need some. The kernel has taken those over files with the ids; the
  // others, such as the right to look into any process, open files, too.
  ok_ = SetThreadGroups(account.groups) && SetFileIds(account.uid, account.gid) &&
        (account.uid == 0 || SetEffective({}));
}

FilesAsUser::~FilesAsUser() {
  if (!changed_) return;
  // Failing to come back would leave a root that cannot do its work: nothing sensible can follow.
  if (!SetEffective(effective_) || !SetFileIds(geteuid(), getegid()) || !SetThreadGroups(groups_)) abort();
}

}  // namespace siding
