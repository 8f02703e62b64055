#include "controller/platform/kubernetes/client/token.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/small_file.h"

namespace siding::kubernetes {
namespace {

constexpr size_t kLongestToken = 64 << 10;

absl::StatusOr<std::string> Checked(absl::string_view text, const std::string& from) {
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  const bool fits = !token.empty() && token.size() <= kLongestToken &&
                    std::all_of(token.begin(), token.end(),
                                [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
  if (!fits) return absl::FailedPreconditionError(from + ": expected a token on one line");
  return std::string(token);
}

}  // namespace

TokenSource::Stamp TokenSource::Look() const {
  struct stat found {};
  if (stat(secret_.path.c_str(), &found) != 0) return {};
  return {found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec};
}

absl::Status TokenSource::Read() {
  const Stamp stamp = Look();  // before the content, so that a change between them is seen the next time
  const absl::StatusOr<std::string> text = ReadSmallFile(secret_.path);
  if (!text.ok()) return absl::FailedPreconditionError(absl::StrCat("token: ", text.status().message()));
  SIDING_ASSIGN_OR_RETURN(token_, Checked(*text, secret_.path));
  stamp_ = stamp;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TokenSource::Get() {
  if (secret_.empty()) return "";
  if (secret_.path.empty()) return Checked(secret_.text, "token");
  MutexLock lock(mutex_);
  if (token_.empty() || Look() != stamp_) SIDING_RETURN_IF_ERROR(Read());
  return token_;
}

bool TokenSource::Renew(const std::string& token) {
  if (secret_.path.empty()) return false;
  MutexLock lock(mutex_);
  return Read().ok() && token_ != token;
}

}  // namespace siding::kubernetes
