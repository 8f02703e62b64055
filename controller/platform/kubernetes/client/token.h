// A bearer token that may change in its file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "controller/platform/kubernetes/client/settings.h"

namespace siding::kubernetes {

// Thread-safe.
class TokenSource {
 public:
  explicit TokenSource(Secret secret) : secret_(std::move(secret)) {}

  // "" if there is none. The file is read when it is another, or has another size or time, than the last
  // time; a service account's token is replaced well before it expires. kFailedPrecondition: it cannot be
  // read, or could not be in a header.
  absl::StatusOr<std::string> Get();
  // The server has refused `token`. True: the file has another one by now.
  bool Renew(const std::string& token);

 private:
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What tells that a file has changed.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size = -1;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  Stamp Look() const;

  const Secret secret_;
  Mutex mutex_;
  Stamp stamp_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace siding::kubernetes
