#include "agent/gpu/uuid.h"

#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siding {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

absl::StatusOr<cuda::Uuid> ParseGpuUuid(const std::string& text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "': expected a GPU's UUID, such as GPU-8c1e2f30-9d54-4e5b-8a7c-0123456789ab"));
  };
  if (text.size() != 40 || !absl::StartsWith(text, "GPU-")) return bad();
  cuda::Uuid uuid{};
  size_t at = 4;
  for (int byte = 0; byte < 16; ++byte) {
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) {
      if (text[at++] != '-') return bad();
    }
    const int high = HexDigit(text[at]), low = HexDigit(text[at + 1]);
    if (high < 0 || low < 0) return bad();
    uuid.bytes[byte] = static_cast<char>(high * 16 + low);
    at += 2;
  }
  return uuid;
}

std::string FormatGpuUuid(const cuda::Uuid& uuid) {
  std::string text = "GPU-";
  for (int byte = 0; byte < 16; ++byte) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[byte]));
    if (byte == 4 || byte == 6 || byte == 8 || byte == 10) text += '-';
    text += hex;
  }
  return text;
}

}  // namespace siding
