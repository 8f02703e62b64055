// The sources of chance in a simulated run. The same seed gives the same run on every machine: nothing of
// the standard library's distributions, which differ between its implementations, is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/units.h"

namespace siding::simulation {

// Not thread-safe.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL) {}

  // SplitMix64.
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // 0 .. n-1
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  // Both ends included.
  int Between(int least, int most) { return least + Below(most - least + 1); }
  Duration Between(Duration least, Duration most) {
    return least + Duration(static_cast<int64_t>(Next() % static_cast<uint64_t>((most - least).count() + 1)));
  }
  // Draws nothing for what cannot happen, so that the rest of the run stays as it was.
  bool Chance(double probability) {
    return probability > 0 && static_cast<double>(Next() >> 11) * 0x1.0p-53 < probability;
  }
  template <class List>
  const auto& OneOf(const List& list) {
    return list[static_cast<size_t>(Below(static_cast<int>(list.size())))];
  }

 private:
  uint64_t state_;
};

// What is drawn from a source of its own: worlds without it are as if it did not exist. Each has another
// number; with the same one, what is drawn for one would say what is drawn for the other.
enum class Source : uint64_t {
  kPutBack = 1,
  kSilence = 3,
  kBurn = 5,
  kWrongLoss = 7,
  kRefusals = 11,
  kFaults = 13,
  kLimits = 17,
  kFullTier = 19,
  kMemory = 23,
};

inline Random SourceOf(uint64_t seed, Source what) { return Random(~seed * static_cast<uint64_t>(what)); }

}  // namespace siding::simulation
