#include "store/manifest.h"

#include <sodium.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "store/checksum.h"
#include "store/layout.h"

namespace siding {

Bytes Manifest::TotalSize() const {
  Bytes total;
  for (const ImageFileEntry& file : files) total += file.size;
  return total;
}

const ImageFileEntry* Manifest::Find(const std::string& name) const {
  const auto found =
      std::lower_bound(files.begin(), files.end(), name,
                       [](const ImageFileEntry& file, const std::string& n) { return file.name < n; });
  return found != files.end() && found->name == name ? &*found : nullptr;
}

Bytes Manifest::NewSize() const {
  Bytes total;
  for (const ImageFileEntry& file : files)
    if (!file.shared) total += file.size;
  return total;
}

namespace store {
namespace {

using nlohmann::json;

constexpr char kFormat[] = "siding-image";
// A version without encryption must refuse an encrypted image, and one that knows of no other image's files
// one that has them; all others stay readable for older versions.
constexpr int kPlainVersion = 1;
constexpr int kEncryptedVersion = 2;
constexpr int kSharingVersion = 3;
constexpr int kVersion = kSharingVersion;
constexpr char kCipher[] = "xchacha20poly1305-secretstream";
constexpr char kChecksumPrefix[] = "xxh3:";
constexpr size_t kDigits = 32;
constexpr int kDeepest = 3;                       // the manifest, its list of files, a file
constexpr int64_t kMostBytes = int64_t{1} << 60;  // of all files together

absl::Status Expected(const std::string& field, const std::string& what) {
  return absl::DataLossError(absl::StrCat(field, ": expected ", what));
}

absl::Status GetString(const json& object, const std::string& name, const std::string& where,
                       std::string& out) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return Expected(where + name, "a string");
  out = it->get<std::string>();
  return absl::OkStatus();
}

absl::Status GetInteger(const json& object, const std::string& name, const std::string& where, int64_t& out) {
  const auto it = object.find(name);
  // Beyond an int64 it is unsigned, or no integer.
  const bool fits = it != object.end() && it->is_number_integer() &&
                    (!it->is_number_unsigned() || it->get<uint64_t>() <= std::numeric_limits<int64_t>::max());
  if (!fits || it->get<int64_t>() < 0) {
    return Expected(where + name, "an integer of at least 0");
  }
  out = it->get<int64_t>();
  return absl::OkStatus();
}

bool IsChecksum(const std::string& text) {
  const size_t prefix = sizeof kChecksumPrefix - 1;
  return text.size() == prefix + kDigits && text.compare(0, prefix, kChecksumPrefix) == 0 &&
         text.find_first_not_of("0123456789abcdef", prefix) == std::string::npos;
}

// A name leads to a file of the image's own folder, whatever the manifest's writer meant.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name != kManifestName &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

absl::Status ParseEncryption(const json& root, std::string& key) {
  const auto object = root.find("encryption");
  if (object == root.end() || !object->is_object()) return Expected("encryption", "an object");
  std::string cipher;
  SIDING_RETURN_IF_ERROR(GetString(*object, "cipher", "encryption.", cipher));
  if (cipher != kCipher) return Expected("encryption.cipher", absl::StrCat("\"", kCipher, "\""));
  SIDING_RETURN_IF_ERROR(GetString(*object, "key", "encryption.", key));
  if (key.empty()) return Expected("encryption.key", "the name of a key");
  return absl::OkStatus();
}

absl::Status ParseFiles(const json& root, std::vector<ImageFileEntry>& files) {
  Bytes left{kMostBytes};
  const auto list = root.find("files");
  if (list == root.end() || !list->is_array()) return Expected("files", "a list");
  for (size_t i = 0; i < list->size(); ++i) {
    const json& entry = (*list)[i];
    const std::string where = absl::StrCat("files[", i, "].");
    if (!entry.is_object()) return Expected(absl::StrCat("files[", i, "]"), "an object");
    ImageFileEntry file;
    SIDING_RETURN_IF_ERROR(GetString(entry, "name", where, file.name));
    if (!IsPlainName(file.name)) return Expected(where + "name", "the name of a file in the image's folder");
    if (i > 0 && file.name <= files.back().name) return Expected(where + "name", "names in order");
    SIDING_RETURN_IF_ERROR(GetInteger(entry, "size", where, file.size.value));
    if (file.size > left) return Expected(where + "size", "less than an exbibyte in all");
    left -= file.size;
    SIDING_RETURN_IF_ERROR(GetString(entry, "checksum", where, file.checksum));
    if (!IsChecksum(file.checksum)) return Expected(where + "checksum", "\"xxh3:\" and 32 hex digits");
    if (const auto shared = entry.find("shared"); shared != entry.end()) {
      if (!shared->is_boolean()) return Expected(where + "shared", "true or false");
      file.shared = shared->get<bool>();
    }
    files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status ParseMetadata(const json& root, std::map<std::string, std::string>& metadata) {
  const auto object = root.find("metadata");
  if (object == root.end() || !object->is_object()) return Expected("metadata", "an object");
  for (const auto& [name, value] : object->items()) {
    if (!value.is_string()) return Expected("metadata." + name, "a string");
    metadata[name] = value.get<std::string>();
  }
  return absl::OkStatus();
}

// Where the digits of the manifest's own checksum begin: it is the last member, so the last one of this
// spelling.
size_t OwnDigits(const std::string& text) {
  static const std::string kMember = "\"checksum\": \"xxh3:";
  const size_t at = text.rfind(kMember);
  return at == std::string::npos || at + kMember.size() + kDigits > text.size() ? std::string::npos
                                                                                : at + kMember.size();
}

std::string DigitsOf(std::string text, size_t at) {
  text.replace(at, kDigits, kDigits, '0');
  return ChecksumOf(text).substr(sizeof kChecksumPrefix - 1);
}

// Before it is parsed, since a value takes many times the memory of its text.
bool IsBounded(const std::string& text) {
  int depth = 0;
  size_t values = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    const bool opens = c == '[' || c == '{';
    depth += opens ? 1 : c == ']' || c == '}' ? -1 : 0;
    values += opens || c == ',' ? 1 : 0;
    if (depth > kDeepest || values > kMostManifestValues) return false;
  }
  return true;
}

bool HasOwnChecksum(const std::string& text) {
  const size_t at = OwnDigits(text);
  return at != std::string::npos && text.substr(at, kDigits) == DigitsOf(text, at);
}

}  // namespace

std::string WithOwnChecksum(std::string text) {
  const size_t at = OwnDigits(text);
  if (at != std::string::npos) text.replace(at, kDigits, DigitsOf(text, at));
  return text;
}

absl::StatusOr<std::string> ManifestToText(const Manifest& manifest) {
  nlohmann::ordered_json root;
  root["format"] = kFormat;
  const bool shares = std::any_of(manifest.files.begin(), manifest.files.end(),
                                  [](const ImageFileEntry& file) { return file.shared; });
  root["version"] = shares                            ? kSharingVersion
                    : manifest.encryption_key.empty() ? kPlainVersion
                                                      : kEncryptedVersion;
  root["checkpoint"] = manifest.key.checkpoint.value();
  root["rank"] = manifest.key.rank;
  root["created_us"] = ToMicros(manifest.created);
  if (!manifest.encryption_key.empty())
    root["encryption"] = {{"cipher", kCipher}, {"key", manifest.encryption_key}};
  root["files"] = nlohmann::ordered_json::array();
  for (const ImageFileEntry& file : manifest.files) {
    root["files"].push_back({{"name", file.name}, {"size", file.size.value}, {"checksum", file.checksum}});
    if (file.shared) root["files"].back()["shared"] = true;
  }
  root["metadata"] = nlohmann::ordered_json::object();
  for (const auto& [name, value] : manifest.metadata) root["metadata"][name] = value;
  root["checksum"] = kChecksumPrefix + std::string(kDigits, '0');
  std::string text;
  try {
    text = root.dump(2) + "\n";
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("the manifest cannot be written as JSON: ", e.what()));
  }
  const size_t values = 10 + (shares ? 5 : 4) * manifest.files.size() + manifest.metadata.size();
  if (text.size() > kLongestManifest || values > kMostManifestValues)
    return absl::InvalidArgumentError(
        absl::StrCat("the manifest is too long: ", text.size(), " bytes, ", manifest.files.size(), " files"));
  return WithOwnChecksum(std::move(text));
}

std::string DigestOf(const std::string& text) {
  unsigned char digest[crypto_generichash_BYTES];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     nullptr, 0);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof digest});
}

absl::StatusOr<Manifest> ParseManifest(const std::string& text) {
  if (text.size() > kLongestManifest)
    return absl::DataLossError(absl::StrCat("expected ", kLongestManifest, " bytes at most"));
  if (!IsBounded(text)) {
    return absl::DataLossError(
        absl::StrCat("expected ", kMostManifestValues, " values at most, nested no deeper than a file's"));
  }
  const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return absl::DataLossError("expected a JSON object");
  std::string format;
  SIDING_RETURN_IF_ERROR(GetString(root, "format", "", format));
  if (format != kFormat) return Expected("format", absl::StrCat("\"", kFormat, "\""));
  int64_t version = 0, rank = 0, created = 0;
  SIDING_RETURN_IF_ERROR(GetInteger(root, "version", "", version));
  // Of any version, so that a flipped bit is not taken for a newer siding.
  const bool as_written = HasOwnChecksum(text);
  if (version > kVersion && as_written) {
    return absl::FailedPreconditionError(
        absl::StrCat("version: written by a newer siding (", version, ", this one knows ", kVersion, ")"));
  }
  if (version < kPlainVersion && as_written) return Expected("version", "at least 1");
  Manifest manifest;
  std::string checkpoint;
  SIDING_RETURN_IF_ERROR(GetString(root, "checkpoint", "", checkpoint));
  SIDING_RETURN_IF_ERROR(GetInteger(root, "rank", "", rank));
  if (rank > std::numeric_limits<int>::max()) return Expected("rank", "the number of a rank");
  SIDING_RETURN_IF_ERROR(GetInteger(root, "created_us", "", created));
  if (created > ToMicros(kLatestTime)) return Expected("created_us", "microseconds since 1970");
  manifest.key = {CheckpointId(checkpoint), static_cast<int>(rank)};
  manifest.created = FromMicros(created);
  if (version == kEncryptedVersion) SIDING_RETURN_IF_ERROR(ParseEncryption(root, manifest.encryption_key));
  SIDING_RETURN_IF_ERROR(ParseFiles(root, manifest.files));
  SIDING_RETURN_IF_ERROR(ParseMetadata(root, manifest.metadata));
  // Last, because a message about a field says more than one about the whole.
  if (OwnDigits(text) == std::string::npos) {
    return Expected("checksum", "\"xxh3:\" and 32 hex digits at the end");
  }
  if (!as_written) return absl::DataLossError("checksum: the manifest was changed after it was written");
  manifest.digest = DigestOf(text);
  return manifest;
}

}  // namespace store
}  // namespace siding
