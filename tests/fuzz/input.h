// What the fuzzers of this folder share. Each is one function, LLVMFuzzerTestOneInput, which libFuzzer calls
// with one input after another; what ends the program is a finding.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace siding::fuzz {

inline std::string TextOf(const uint8_t* data, size_t size) {
  return std::string(reinterpret_cast<const char*>(data), size);
}

// What must hold for any input.
inline void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace siding::fuzz
