// A checksum that is the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heat {

inline uint64_t Fnv1a(const void* data, size_t size, uint64_t hash = 14695981039346656037u) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

}  // namespace heat
