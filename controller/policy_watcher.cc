#include "controller/policy_watcher.h"

#include "common/logging.h"
#include "policy/policy_file.h"

namespace siding {
namespace {

constexpr int kCallsPerLook = 10;  // the main loop turns about ten times a second

std::filesystem::file_time_type ChangeOf(const std::string& path) {
  std::error_code error;
  return std::filesystem::last_write_time(path, error);
}

}  // namespace

PolicyWatcher::PolicyWatcher(std::string path, Engine& engine)
    : path_(std::move(path)), engine_(engine), changed_(ChangeOf(path_)) {}

void PolicyWatcher::Look(bool now) {
  if (path_.empty()) {
    if (now) spdlog::warn("there is no policy file to load again: sidingd was started without --policy");
    return;
  }
  if (!now && ++calls_ % kCallsPerLook != 0) return;
  const auto changed = ChangeOf(path_);
  if (!now && changed == changed_) return;
  changed_ = changed;
  Load();
}

void PolicyWatcher::Load() {
  const auto file = LoadPolicyFile(path_);
  if (!file.ok()) {
    spdlog::error("the policy was not changed: {}", std::string(file.status().message()));
    engine_.PolicyFailed();
    return;
  }
  for (const std::string& warning : file->warnings) spdlog::warn("{}: {}", path_, warning);
  engine_.SetPolicy(file->policy);
  spdlog::info("the policy in {} is in force", path_);
}

}  // namespace siding
