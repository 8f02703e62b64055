// What shows that a number on a pod was written by siding: users can write annotations as well, and one who
// wrote another's number on a pod of his would act on that job.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/objects/pod.h"

namespace siding::kubernetes {

// A keyed hash (libsodium's crypto_auth, HMAC-SHA-512/256) of the pod's uid and its marks. A copy of it on
// another pod does not hold, since that has another uid. Thread-safe.
class Seal {
 public:
  // The key is in a Secret, `data.key`, which is made when it is not there: all controllers of a cluster have
  // the same one. Without it, or with another, pods get new numbers. kFailedPrecondition: the Secret has no
  // key in it.
  static absl::StatusOr<Seal> Load(ApiClient& client, const ObjectName& where);
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
