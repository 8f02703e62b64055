#include "common/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

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

// Of a whole character of this length.
uint32_t Decode(const std::string& text, size_t at, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  if (length == 1) return byte(0);
  uint32_t character = byte(0) & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) character = character << 6 | (byte(i) & 0x3Fu);
  return character;
}

bool IsUnseen(uint32_t c) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kUnseen[] = {
      {0x00, 0x1F},        // C0
      {0x7F, 0x9F},        // DEL, C1
      {0xAD, 0xAD},        // soft hyphen
      {0x61C, 0x61C},      // Arabic letter mark
      {0x180E, 0x180E},    // Mongolian vowel separator
      {0x200B, 0x200F},    // zero width, marks of direction
      {0x2028, 0x202E},    // separators of lines and paragraphs, embeddings, overrides
      {0x2060, 0x206F},    // word joiner, invisible operators, isolates, deprecated formats
      {0xFEFF, 0xFEFF},    // byte order mark
      {0xFFF9, 0xFFFB},    // interlinear annotations
      {0xE0000, 0xE007F},  // tags
  };
  return std::any_of(std::begin(kUnseen), std::end(kUnseen),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

}  // namespace

std::optional<Unseen> FindUnseen(const std::string& text, size_t from) {
  for (size_t at = from; at < text.size();) {
    const size_t length = LengthOf(static_cast<uint8_t>(text[at]));
    // Whether the character is whole: what comes behind it need not be text.
    if (length == 0 || at + length > text.size() || (length > 1 && FindNotUtf8(text.substr(at, length)))) {
      ++at;
      continue;
    }
    const uint32_t character = Decode(text, at, length);
    if (IsUnseen(character)) return Unseen{at, length, character};
    at += length;
  }
  return std::nullopt;
}

std::string NameOf(const Unseen& unseen) {
  char name[16];
  snprintf(name, sizeof name, "U+%04X", unseen.character);
  return name;
}

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
