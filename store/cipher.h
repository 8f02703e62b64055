// Files encrypted with libsodium's secretstream (XChaCha20-Poly1305): a header of 24 bytes, then chunks of 64
// KiB, each 17 bytes longer than its plain text, the last of them marked as such. docs/design/store-format.md
// has the details.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/disk.h"
#include "store/secret_key.h"

namespace siding::store {

struct Encrypted {
  int64_t size = 0;
  std::string checksum;  // of the encrypted file
};

// Makes the file `to`, synced. What is encrypted under one `name` cannot be decrypted under another one, so
// nobody can swap files between images. On failure nothing is left of it.
absl::StatusOr<Encrypted> EncryptFile(Disk& disk, const std::string& from, const std::string& to,
                                      const std::string& name, const SecretKey& key);

// Makes the plain file `to`, not synced. kDataLoss if `from` is not what was encrypted with that key under
// that name, from its first to its last byte; kCancelled if `stop` (may be empty), which is asked before each
// chunk, says true. Then nothing is left of `to`.
absl::Status DecryptFile(Disk& disk, const std::string& from, const std::string& to, const std::string& name,
                         const SecretKey& key, const std::function<bool()>& stop = {});

}  // namespace siding::store
