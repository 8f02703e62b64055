#include "controller/platform/kubernetes/client/transport.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siding::kubernetes {

absl::string_view ToString(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet:
      return "GET";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kPut:
      return "PUT";
    case HttpMethod::kPatch:
      return "PATCH";
    case HttpMethod::kDelete:
      return "DELETE";
  }
  return "";
}

std::string Encode(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-._~", c)) {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string TargetOf(const HttpRequest& request) {
  std::string target = request.path;
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    absl::StrAppend(&target, std::string(1, separator), Encode(name), "=", Encode(value));
    separator = '&';
  }
  return target;
}

}  // namespace siding::kubernetes
