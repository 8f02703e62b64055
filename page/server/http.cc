#include "page/server/http.h"

#include "absl/strings/match.h"

namespace siding::page {

std::optional<std::string> HttpRequest::Header(const std::string& name) const {
  std::optional<std::string> value;
  for (const auto& [other, text] : headers) {
    if (!absl::EqualsIgnoreCase(other, name)) continue;
    if (value) return std::nullopt;
    value = text;
  }
  return value;
}

}  // namespace siding::page
