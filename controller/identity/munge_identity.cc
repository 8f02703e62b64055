#include "controller/identity/munge_identity.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/identity/accounts.h"

namespace siding {
namespace {

constexpr Duration kBetweenSweeps = std::chrono::minutes(1);
// Of what a credential was made for. A few hundred bytes may unpack to a mebibyte.
constexpr size_t kLongestShown = 64;

// One credential can be written in many ways: with blanks, with something behind its end, with other bits in
// what fills up its last letters. Its signature is in front of these.
std::string WithoutFreedoms(const std::string& credential) {
  constexpr size_t kLastLetters = 4;
  const size_t begin = credential.find(':');
  std::string letters;
  for (size_t i = begin == std::string::npos ? 0 : begin + 1; i < credential.size() && credential[i] != ':';
       ++i) {
    const char c = credential[i];
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '/') letters += c;
  }
  letters.resize(letters.size() - std::min(letters.size(), kLastLetters));
  return letters;
}

}  // namespace

bool UsedCredentials::Add(const std::string& credential, Time expires, Time now) {
  MutexLock lock(mutex_);
  if (now >= swept_ + kBetweenSweeps || now < swept_) {
    std::erase_if(expires_, [&](const auto& used) { return used.second < now; });
    swept_ = now;
  }
  const uint64_t checksum =
      absl::HashOf(WithoutFreedoms(credential));  // of a seed that differs from process to process
  if (expires_.contains(checksum)) return false;
  if (expires_.size() < kMost) expires_.emplace(checksum, expires);
  return true;
}

absl::StatusOr<UserIdentity> MungeIdentities::UserOf(const Call& call) const {
  const auto& metadata = call.context.client_metadata();
  const auto [first, last] = metadata.equal_range(kMungeMetadata);
  if (first == last || std::next(first) != last) {
    return absl::UnauthenticatedError("expected one MUNGE credential with the call (sidingctl --munge)");
  }
  const std::string credential(first->second.data(), first->second.size());
  SIDING_ASSIGN_OR_RETURN(const MungeDecoded decoded, decode_(credential));
  if (decoded.payload != MungePayload(call.method)) {
    return absl::UnauthenticatedError(absl::StrCat("the MUNGE credential of uid ", decoded.uid, " is for '",
                                                   absl::CHexEscape(decoded.payload.substr(0, kLongestShown)),
                                                   "', not for '", MungePayload(call.method), "'"));
  }
  const Time now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  if (!used_.Add(credential, decoded.expires, now))
    return absl::UnauthenticatedError("the MUNGE credential has been used before");
  return UserIdentity{decoded.uid, decoded.gid, UserName(decoded.uid)};
}

}  // namespace siding
