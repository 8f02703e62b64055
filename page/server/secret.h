// Secrets that open the page, and that orders have with them.
#pragma once

#include <openssl/crypto.h>

#include <string>

namespace siding::page {

// From the kernel; letters, digits, - and _. 256 bits.
std::string DrawSecret();

// In a time that says nothing of where they differ. Their length is no secret. Nothing is the same as none.
inline bool SameSecret(const std::string& a, const std::string& b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// Another one that nobody can tell from the first: who has this one has not that one.
std::string DeriveSecret(const std::string& secret, const std::string& purpose);

}  // namespace siding::page
