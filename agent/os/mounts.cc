#include "agent/os/mounts.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace siding {
namespace {

// Below these, engines keep what they mount for one container or service each.
constexpr const char* kOthers[] = {
    "/run/credentials/", "/run/containerd/",       "/run/containers/",
    "/run/docker/",      "/run/k3s/containerd/",   "/var/lib/containerd/",
    "/var/lib/docker/",  "/var/lib/kubelet/pods/", "/var/lib/containers/storage/"};

// Where agents keep what is theirs: images in memory as well, which other nodes may not have.
constexpr absl::string_view kSidings = "/var/lib/siding/";

// Blanks, tabs, line feeds and backslashes are written as three octal digits.
std::string Unescape(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '\\' && i + 3 < text.size()) {
      for (size_t digit = 1; digit <= 3; ++digit) value = value * 8 + (text[i + digit] - '0');
      plain.push_back(static_cast<char>(value));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

}  // namespace

std::vector<Mount> ParseMounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  for (absl::string_view line : absl::StrSplit(mountinfo, '\n')) {
    // 36 35 98:0 /root /point options [optional...] - type source options
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ');
    size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 1 < fields.size()) mounts.push_back({Unescape(fields[4]), std::string(fields[dash + 1])});
  }
  return mounts;
}

bool IsTransient(const Mount& mount, uid_t user) {
  if (mount.type == "nsfs" || (mount.type == "tmpfs" && absl::StartsWith(mount.point, kSidings))) return true;
  for (const char* folder : kOthers)
    if (absl::StartsWith(mount.point, folder)) return true;
  constexpr absl::string_view kSessions = "/run/user/";
  if (!absl::StartsWith(mount.point, kSessions)) return false;
  const absl::string_view session = absl::string_view(mount.point).substr(kSessions.size());
  uid_t owner = 0;
  return absl::SimpleAtoi(session.substr(0, session.find('/')), &owner) && owner != user;
}

}  // namespace siding
