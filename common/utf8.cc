#include "common/utf8.h"

#include <cstdint>

namespace siding {
namespace {

// Of the character that begins with this byte; 0: none does.
size_t LengthOf(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return 2;
  if (first < 0xF0) return 3;
  return first < 0xF5 ? 4 : 0;
}

// Only the second byte is not free: it tells what is too long, a surrogate, or too large.
bool MayFollow(uint8_t first, uint8_t second) {
  const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return least <= second && second <= most;
}

// Where the first bytes from `at` on begin that are not UTF-8; the text's size if there are none.
size_t EndOfText(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  while (at < text.size()) {
    const size_t length = LengthOf(byte(at));
    if (length == 0 || at + length > text.size()) return at;
    if (length > 1 && !MayFollow(byte(at), byte(at + 1))) return at;
    for (size_t i = 2; i < length; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    }
    at += length;
  }
  return at;
}

}  // namespace

std::optional<size_t> FindNotUtf8(const std::string& text) {
  const size_t end = EndOfText(text, 0);
  return end == text.size() ? std::nullopt : std::optional(end);
}

std::string ToUtf8(std::string text) {
  size_t end = EndOfText(text, 0);
  if (end == text.size()) return text;
  std::string result;
  for (size_t begin = 0;; begin = end + 1, end = EndOfText(text, begin)) {
    result.append(text, begin, end - begin);
    if (end == text.size()) return result;
    result += "\xEF\xBF\xBD";
  }
}

}  // namespace siding
