#include "controller/platform/kubernetes/reconcile/seal.h"

#include <sodium.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

static_assert(Seal::kKeySize == crypto_auth_KEYBYTES);

absl::StatusOr<std::string> KeyFrom(const Object& secret, const ObjectName& where) {
  std::string key;
  if (!absl::Base64Unescape(TextAt(*secret.json, {"data", "key"}), &key) || key.size() != Seal::kKeySize)
    return absl::FailedPreconditionError(absl::StrCat("Secret ", ToString(where), ": data.key: expected ",
                                                      Seal::kKeySize, " bytes in base64"));
  return key;
}

absl::StatusOr<std::string> NewKey() {
  if (sodium_init() < 0) return absl::InternalError("libsodium does not work");
  std::string key(Seal::kKeySize, '\0');
  randombytes_buf(key.data(), key.size());
  return key;
}

// The Secret's key. `kept` becomes its key where there is no Secret.
absl::StatusOr<std::string> ReadOrMake(ApiClient& client, const ObjectName& where,
                                       const std::optional<std::string>& kept) {
  absl::StatusOr<Object> secret = client.Get(Secrets(), where);
  if (secret.ok()) return KeyFrom(*secret, where);
  if (!absl::IsNotFound(secret.status())) return secret.status();
  absl::StatusOr<std::string> key;
  if (kept) {
    key = *kept;
  } else {
    key = NewKey();
  }
  if (!key.ok()) return key;
  const Json made = {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", where.name}, {"namespace", where.space}}},
                     {"data", {{"key", absl::Base64Escape(*key)}}}};
  secret = client.Create(Secrets(), where.space, made);
  // Another controller may have been faster: what is there counts.
  if (absl::IsAlreadyExists(secret.status())) secret = client.Get(Secrets(), where);
  if (!secret.ok()) return secret.status();
  return KeyFrom(*secret, where);
}

}  // namespace

Seal::Seal(std::string key) : key_(std::move(key)) {}

absl::StatusOr<Seal> Seal::Load(ApiClient& client, const ObjectName& where, SealKeeper* keeper) {
  std::optional<std::string> kept;
  if (keeper != nullptr) {
    absl::StatusOr<std::string> read = keeper->Read();
    if (!read.ok() && !absl::IsNotFound(read.status())) return read.status();
    if (read.ok()) kept = *std::move(read);
  }
  SIDING_ASSIGN_OR_RETURN(std::string key, ReadOrMake(client, where, kept));
  if (kept && (kept->size() != key.size() || sodium_memcmp(kept->data(), key.data(), key.size()) != 0))
    return absl::FailedPreconditionError(
        absl::StrCat("Secret ", ToString(where),
                     ": data.key: expected the key that siding keeps beside its journal. If the Secret "
                     "was replaced, delete it: siding makes it again. If the state folder is an older one, "
                     "remove kubernetes-seal in it"));
  // After the Secret, so that of two controllers both keep the same; before anything is sealed with it.
  if (keeper != nullptr && !kept) SIDING_RETURN_IF_ERROR(keeper->Keep(key));
  return Seal(std::move(key));
}

std::string Seal::Of(const std::string& uid, const std::string& number, const std::string& starts) const {
  const std::string text = absl::StrCat(uid, "/", number, "/", starts);
  std::string hash(crypto_auth_BYTES, '\0');
  crypto_auth(reinterpret_cast<unsigned char*>(hash.data()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(),
              reinterpret_cast<const unsigned char*>(key_.data()));
  return absl::Base64Escape(hash);
}

bool Seal::HoldsOn(const Pod& pod) const {
  const std::string expected = Of(pod.uid, SaidBy(pod, kJobMark), SaidBy(pod, kStartsMark));
  const std::string said = SaidBy(pod, kSealMark);
  return said.size() == expected.size() && sodium_memcmp(said.data(), expected.data(), said.size()) == 0;
}

}  // namespace siding::kubernetes
