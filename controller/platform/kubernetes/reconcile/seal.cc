#include "controller/platform/kubernetes/reconcile/seal.h"

#include <sodium.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

static_assert(Seal::kKeySize == crypto_auth_KEYBYTES);

const Resource& Secrets() {
  static const Resource resource{"", "v1", "secrets", true};
  return resource;
}

std::string SaidBy(const Pod& pod, const char* mark) {
  const auto said = pod.said.find(mark);
  return said == pod.said.end() ? "" : said->second;
}

absl::StatusOr<Seal> From(const Object& secret, const ObjectName& where) {
  std::string key;
  if (!absl::Base64Unescape(TextAt(*secret.json, {"data", "key"}), &key) || key.size() != Seal::kKeySize)
    return absl::FailedPreconditionError(absl::StrCat("Secret ", ToString(where), ": data.key: expected ",
                                                      Seal::kKeySize, " bytes in base64"));
  return Seal(std::move(key));
}

}  // namespace

Seal::Seal(std::string key) : key_(std::move(key)) {}

absl::StatusOr<Seal> Seal::Load(ApiClient& client, const ObjectName& where) {
  absl::StatusOr<Object> secret = client.Get(Secrets(), where);
  if (secret.ok()) return From(*secret, where);
  if (!absl::IsNotFound(secret.status())) return secret.status();
  if (sodium_init() < 0) return absl::InternalError("libsodium does not work");
  std::string key(kKeySize, '\0');
  randombytes_buf(key.data(), key.size());
  const Json made = {{"apiVersion", "v1"},
                     {"kind", "Secret"},
                     {"metadata", {{"name", where.name}, {"namespace", where.space}}},
                     {"data", {{"key", absl::Base64Escape(key)}}}};
  secret = client.Create(Secrets(), where.space, made);
  // Another controller may have been faster: what is there counts.
  if (absl::IsAlreadyExists(secret.status())) secret = client.Get(Secrets(), where);
  if (!secret.ok()) return secret.status();
  return From(*secret, where);
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
