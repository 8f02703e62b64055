// What shows that a number on a pod was written by siding: users can write annotations as well, and one who
// wrote another's number on a pod of his would act on that job.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/objects/pod.h"

namespace siding::kubernetes {

// Keeps the key for a controller, beside the Secret.
class SealKeeper {
 public:
  virtual ~SealKeeper() = default;
  // kNotFound: it has none.
  virtual absl::StatusOr<std::string> Read() = 0;
  // When it returns, the key is there after a power cut, too.
  virtual absl::Status Keep(const std::string& key) = 0;
};

// A keyed hash (libsodium's crypto_auth, HMAC-SHA-512/256) of the pod's uid and its marks. A copy of it on
// another pod does not hold, since that has another uid. Thread-safe.
class Seal {
 public:
  // The key is in a Secret, `data.key`, which is made when it is not there: all controllers of a cluster have
  // the same one. With another one pods would get new numbers, and their jobs begin beside what was saved of
  // them. So the keeper (if there is one) has it before anything is sealed, and a Secret that was deleted is
  // made of it again. kFailedPrecondition: the Secret has no key in it, or not the one that was kept.
  static absl::StatusOr<Seal> Load(ApiClient& client, const ObjectName& where, SealKeeper* keeper);
  explicit Seal(std::string key);  // kKeySize bytes
  static constexpr size_t kKeySize = 32;

  // What goes with this number on the pod of this uid. `starts`: as written, "" if it is not.
  std::string Of(const std::string& uid, const std::string& number, const std::string& starts) const;
  // The pod's marks are siding's.
  bool HoldsOn(const Pod& pod) const;

 private:
  std::string key_;
};

}  // namespace siding::kubernetes
