#include "controller/platform/kubernetes/reconcile/seal_file.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace siding::kubernetes {

SealFile::SealFile(std::string path) : path_(std::move(path)) {}

absl::StatusOr<std::string> SealFile::Read() {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(path_));
  std::string key;
  if (!absl::Base64Unescape(absl::StripAsciiWhitespace(text), &key) || key.size() != Seal::kKeySize)
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": expected ", Seal::kKeySize, " bytes in base64"));
  return key;
}

absl::Status SealFile::Keep(const std::string& key) {
  return WriteFileDurably(path_, absl::StrCat(absl::Base64Escape(key), "\n"), 0600);
}

}  // namespace siding::kubernetes
