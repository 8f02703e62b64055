#include "controller/journal/checksum.h"

#include <xxhash.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace siding {

int64_t EventChecksum(int64_t seq, int64_t at_us, int64_t job, absl::string_view kind,
                      absl::string_view body) {
  const std::string text = absl::StrCat(seq, " ", at_us, " ", job, " ", kind, " ", body);
  return static_cast<int64_t>(XXH3_64bits(text.data(), text.size()));
}

}  // namespace siding
