#include "agent/pods/criu_settings.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kMark[] = "org.criu.config";  // runc's name for it, an annotation

std::string FileOf(const std::string& bundle) { return bundle + "/siding-criu.conf"; }

}  // namespace

absl::Status NameCriuSettings(const std::string& bundle) {
  // A restore takes what is in the image.
  SIDING_RETURN_IF_ERROR(WriteCriuSettings(bundle, true));
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(bundle + "/config.json"));
  nlohmann::json config = nlohmann::json::parse(text, nullptr, false);
  if (!config.is_object()) return absl::InvalidArgumentError(bundle + "/config.json: expected an object");
  config["annotations"][kMark] = FileOf(bundle);
  return WriteFileAtomically(bundle + "/config.json", config.dump(), 0644);
}

absl::Status WriteCriuSettings(const std::string& bundle, bool connections) {
  // No packet has to be kept from connections that do not leave the container: it is frozen.
  return WriteFileAtomically(
      FileOf(bundle), absl::StrCat("network-lock skip\n", connections ? "tcp-established\n" : ""), 0600);
}

}  // namespace siding
