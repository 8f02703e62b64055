#include "page/server/secret.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <array>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace siding::page {
namespace {

constexpr size_t kSecretBytes = 32;
using Bytes = std::array<unsigned char, kSecretBytes>;

std::string TextOf(const Bytes& bytes) {
  return absl::WebSafeBase64Escape(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

std::string DrawSecret() {
  Bytes bytes{};
  // So few come whole, and at once but for the first seconds of a machine.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) std::abort();
  return TextOf(bytes);
}

std::string DeriveSecret(const std::string& secret, const std::string& purpose) {
  Bytes bytes{};
  unsigned size = bytes.size();
  const auto* const text = reinterpret_cast<const unsigned char*>(purpose.data());
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text, purpose.size(), bytes.data(),
           &size) == nullptr)
    std::abort();
  return TextOf(bytes);
}

}  // namespace siding::page
