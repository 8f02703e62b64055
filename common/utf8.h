// Whether bytes are text, and making text of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace siding {

// Where the first bytes begin that are not UTF-8 (RFC 3629: neither longer than needed, nor half of a pair of
// surrogates, nor beyond U+10FFFF).
std::optional<size_t> FindNotUtf8(const std::string& text);
// With U+FFFD, the replacement character, for each byte that belongs to no character.
std::string ToUtf8(std::string text);

}  // namespace siding
