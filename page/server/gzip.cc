#include "page/server/gzip.h"

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siding::page {

bool TakesGzip(const std::string& accept_encoding) {
  std::optional<bool> any;
  for (const absl::string_view coding : absl::StrSplit(accept_encoding, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(coding, ';');
    const absl::string_view name = absl::StripAsciiWhitespace(parts[0]);
    bool taken = true;
    for (size_t i = 1; i < parts.size(); ++i) {
      absl::string_view weight = absl::StripAsciiWhitespace(parts[i]);
      double q = 1;
      if (absl::ConsumePrefix(&weight, "q=") && absl::SimpleAtod(weight, &q)) taken = q > 0;
    }
    if (absl::EqualsIgnoreCase(name, "gzip") || absl::EqualsIgnoreCase(name, "x-gzip")) return taken;
    if (name == "*") any = taken;
  }
  return any.value_or(false);
}

}  // namespace siding::page
