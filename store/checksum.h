// XXH3, 128 bits, fed piece by piece.
#pragma once

#include <xxhash.h>

#include <memory>
#include <string>

#include "absl/strings/str_format.h"

namespace siding {

class Checksum {
 public:
  Checksum() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
  void Update(const void* data, size_t size) { XXH3_128bits_update(state_.get(), data, size); }
  // "xxh3:<32 hex digits>" of what came so far.
  std::string Digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return absl::StrFormat("xxh3:%016x%016x", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace siding
