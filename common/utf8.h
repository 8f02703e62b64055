// Whether bytes are text, and making text of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace siding {

// Where the first bytes begin that are not UTF-8 (RFC 3629: neither longer than needed, nor half of a pair of
// surrogates, nor beyond U+10FFFF).
std::optional<size_t> FindNotUtf8(const std::string& text);
// With U+FFFD, the replacement character, for each byte that belongs to no character.
std::string ToUtf8(std::string text);

// A character that is not seen where it is written, and makes of what stands around it something else than
// it is: controls (C0, DEL, C1), marks of the direction of writing, what has no width, other formats, tags.
struct Unseen {
  size_t at = 0;  // bytes
  size_t size = 0;
  uint32_t character = 0;
  bool operator==(const Unseen&) const = default;
};
// The first one from `from` on. Bytes that are no UTF-8 are none.
std::optional<Unseen> FindUnseen(const std::string& text, size_t from = 0);
// "U+202E".
std::string NameOf(const Unseen& unseen);

}  // namespace siding
