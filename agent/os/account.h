// Users as this node's accounts have them, and file accesses on their behalf.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace siding {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;  // empty: there is no such account here
  std::string home = "/";
  std::vector<gid_t> groups;  // all of them, `gid` among them
};

// Thread-safe.
Account AccountOf(uid_t uid, gid_t gid);

// While it lives, the calling thread opens, makes and removes files as the user: with the user's ids and
// groups and without root's right to everything. So whatever a path of the user's leads to, by links or by a
// rename at the worst moment, is something that the user could have done alone; magic links in /proc, too. It
// has no other right of root's either: no signals to others, no ptrace.
//
// For root. Another user can act for itself only. Not to be passed between threads; no two in one thread.
class FilesAsUser {
 public:
  explicit FilesAsUser(const Account& account);
  ~FilesAsUser();
  FilesAsUser(const FilesAsUser&) = delete;
  FilesAsUser& operator=(const FilesAsUser&) = delete;
  // False: nothing has changed, and nothing may be touched.
  bool ok() const { return ok_; }

 private:
  std::vector<gid_t> groups_;            // the thread's own
  std::array<uint32_t, 2> effective_{};  // capabilities, the thread's own
  bool changed_ = false;
  bool ok_ = false;
};

}  // namespace siding
