// The keys that images are encrypted with, and where they come from.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace siding::store {

// 256 bits. Wiped when it is destroyed.
class SecretKey {
 public:
  static constexpr size_t kSize = 32;
  using Data = std::array<unsigned char, kSize>;

  explicit SecretKey(const Data& data) : data_(data) {}
  ~SecretKey();
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;

  const unsigned char* data() const { return data_.data(); }
  // Names the key in manifests: 16 hex digits, from which the key cannot be computed.
  std::string Id() const;

 private:
  Data data_;
};

// 64 hex digits, with or without a newline. kInvalidArgument if it is anything else.
absl::StatusOr<SecretKey> ParseSecretKey(const std::string& text);

// Immutable, so thread-safe.
class KeyRing {
 public:
  // New images get the key in `file`; older ones may have any that lies beside it under a name ending in
  // ".image-key". A `file` without a slash is a systemd credential, in $CREDENTIALS_DIRECTORY. A file that
  // others than its owner, who is root or we, may read is refused.
  static absl::StatusOr<KeyRing> Load(const std::string& file);
  explicit KeyRing(const SecretKey& current);

  const SecretKey& current() const { return keys_.at(current_); }
  // kNotFound if there is none of that name.
  absl::StatusOr<SecretKey> Find(const std::string& id) const;
  size_t size() const { return keys_.size(); }

 private:
  std::string current_;
  std::map<std::string, SecretKey> keys_;
};

}  // namespace siding::store
