#include "page/server/gzip.h"

#include <zlib.h>

#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace siding::page {

std::string Gzip(const std::string& bytes) {
  constexpr int kWindowBits = 15, kGzip = 16, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits + kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return "";
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  // zlib reads it alone, and its interface is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  packed.shrink_to_fit();  // it was as long as the worst case
  return packed;
}

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
