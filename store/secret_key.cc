#include "store/secret_key.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "common/files.h"
#include "common/status.h"

namespace siding::store {
namespace {

constexpr char kSuffix[] = ".image-key";
constexpr char kContext[] = "siding image key";

absl::Status CheckPrivate(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return ErrnoError(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::FailedPreconditionError(path + " is not a regular file");
  if (info.st_uid != 0 && info.st_uid != geteuid())
    return absl::FailedPreconditionError(
        absl::StrCat(path, " belongs to uid ", info.st_uid, ", expected root"));
  if ((info.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(path, " has mode ",
                                                      absl::StrFormat("%04o", info.st_mode & 07777),
                                                      ": others than its owner may use it; expected 0400"));
  }
  return absl::OkStatus();
}

absl::StatusOr<SecretKey> LoadOne(const std::string& path) {
  SIDING_RETURN_IF_ERROR(CheckPrivate(path));
  SIDING_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
  auto key = ParseSecretKey(text);
  sodium_memzero(text.data(), text.size());
  if (!key.ok()) return Annotate(key.status(), path);
  return key;
}

std::string Place(const std::string& file) {
  const char* const credentials = std::getenv("CREDENTIALS_DIRECTORY");
  if (absl::StrContains(file, "/") || credentials == nullptr) return file;
  return absl::StrCat(credentials, "/", file);
}

}  // namespace

SecretKey::~SecretKey() { sodium_memzero(data_.data(), data_.size()); }

std::string SecretKey::Id() const {
  constexpr size_t kIdSize = 8;
  static_assert(crypto_generichash_KEYBYTES_MIN <= kSize && kSize <= crypto_generichash_KEYBYTES_MAX);
  unsigned char hash[crypto_generichash_BYTES_MIN];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char*>(kContext), sizeof kContext - 1,
                     data_.data(), data_.size());
  char hex[2 * kIdSize + 1];
  return sodium_bin2hex(hex, sizeof hex, hash, kIdSize);
}

absl::StatusOr<SecretKey> ParseSecretKey(const std::string& text) {
  SecretKey::Data data;
  size_t size = 0;
  const char* end = nullptr;
  const bool hex =
      sodium_hex2bin(data.data(), data.size(), text.data(), text.size(), nullptr, &size, &end) == 0;
  const bool whole = end != nullptr && absl::StripAsciiWhitespace(text.c_str() + (end - text.data())).empty();
  if (!hex || !whole || size != data.size() || text.size() > 2 * data.size() + 1)
    return absl::InvalidArgumentError("expected 64 hex digits, as of: openssl rand -hex 32");
  SecretKey key(data);
  sodium_memzero(data.data(), data.size());
  return key;
}

KeyRing::KeyRing(const SecretKey& current) : current_(current.Id()) { keys_.emplace(current_, current); }

absl::StatusOr<KeyRing> KeyRing::Load(const std::string& file) {
  const std::string path = Place(file);
  SIDING_ASSIGN_OR_RETURN(const SecretKey current, LoadOne(path));
  KeyRing ring(current);
  std::error_code error;
  const std::string folder = std::filesystem::path(path).parent_path();
  for (auto it = std::filesystem::directory_iterator(folder.empty() ? "." : folder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    const std::string other = it->path();
    if (!absl::EndsWith(other, kSuffix)) continue;
    SIDING_ASSIGN_OR_RETURN(const SecretKey key, LoadOne(other));
    ring.keys_.emplace(key.Id(), key);
  }
  if (error) return absl::InternalError(absl::StrCat("list ", folder, ": ", error.message()));
  return ring;
}

absl::StatusOr<SecretKey> KeyRing::Find(const std::string& id) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return absl::NotFoundError("there is no key " + id);
  return found->second;
}

}  // namespace siding::store
