#include "common/tls/names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kScheme[] = "siding://";
constexpr size_t kLongest = 64;  // of a common name

absl::StatusOr<CertificateName> ParseUri(const std::string& uri) {
  using Kind = CertificateName::Kind;
  for (const Kind kind : {Kind::kNode, Kind::kUser}) {
    absl::string_view rest = uri;
    if (absl::ConsumePrefix(&rest, ToUri({kind, ""}))) {
      const CertificateName name{kind, std::string(rest)};
      SIDING_RETURN_IF_ERROR(CheckName(name.name));
      return name;
    }
  }
  return absl::InvalidArgumentError("expected siding://node/NAME or siding://user/NAME");
}

}  // namespace

std::string ToString(CertificateName::Kind kind) {
  return kind == CertificateName::Kind::kNode ? "node" : "user";
}

std::string ToUri(const CertificateName& name) {
  return absl::StrCat(kScheme, ToString(name.kind), "/", name.name);
}

absl::StatusOr<CertificateName> NameAmong(const std::vector<std::string>& uris) {
  const std::string* ours = nullptr;
  for (const std::string& uri : uris) {
    if (!absl::StartsWithIgnoreCase(uri, kScheme)) continue;
    if (ours != nullptr) {
      return absl::UnauthenticatedError(absl::StrCat("the certificate has two names, ",
                                                     absl::CHexEscape(*ours), " and ", absl::CHexEscape(uri),
                                                     "; expected one"));
    }
    ours = &uri;
  }
  if (ours == nullptr) {
    return absl::UnauthenticatedError(
        "the certificate says neither siding://node/NAME nor siding://user/NAME among its alternative names");
  }
  const auto name = ParseUri(*ours);
  if (name.ok()) return name;
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate's name ", absl::CHexEscape(*ours), ": ", name.status().message()));
}

absl::Status CheckName(const std::string& name) {
  const auto usual = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  if (!name.empty() && name.size() <= kLongest && name[0] != '.' && name[0] != '-' &&
      std::all_of(name.begin(), name.end(), usual)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the name '", absl::CHexEscape(name), "': expected at most ", kLongest,
                   " letters, digits, '.', '_' and '-', beginning with neither '.' nor '-'"));
}

}  // namespace siding
