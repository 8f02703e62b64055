#include "controller/policy_watcher.h"

#include "common/logging.h"
#include "policy/policy_file.h"
#include "policy/policy_text.h"

namespace siding {
namespace {

constexpr int kCallsPerLook = 10;  // the main loop turns about ten times a second

std::filesystem::file_time_type ChangeOf(const std::string& path) {
  std::error_code error;
  return std::filesystem::last_write_time(path, error);
}

}  // namespace

PolicyWatcher::PolicyWatcher(std::string path, Engine& engine, const Clock& clock)
    : path_(std::move(path)),
      engine_(engine),
      clock_(clock),
      changed_(ChangeOf(path_)),
      loaded_(clock.Now()) {}

void PolicyWatcher::Look() {
  MutexLock lock(mutex_);
  if (path_.empty() || ++calls_ % kCallsPerLook != 0) return;
  if (ChangeOf(path_) != changed_) Load("").IgnoreError();  // it has been logged, and Current() says it
}

absl::StatusOr<PolicyWatcher::Reloaded> PolicyWatcher::Reload(const std::string& by) {
  MutexLock lock(mutex_);
  if (path_.empty()) {
    return absl::FailedPreconditionError(
        "there is no policy file to load: sidingd was started without --policy, and the defaults are in "
        "force");
  }
  return Load(by);
}

PolicyWatcher::InForce PolicyWatcher::Current() const {
  MutexLock lock(mutex_);
  return {engine_.policy(), loaded_, problem_};
}

absl::StatusOr<PolicyWatcher::Reloaded> PolicyWatcher::Load(const std::string& by) {
  changed_ = ChangeOf(path_);  // before it is read: what is written after that is looked at again
  const auto file = LoadPolicyFile(path_);
  if (!file.ok()) {
    problem_ = std::string(file.status().message());
    spdlog::error("the policy was not changed: {}", problem_);
    engine_.PolicyFailed();
    return absl::FailedPreconditionError("the policy was not changed: " + problem_);
  }
  for (const std::string& warning : file->warnings) spdlog::warn("{}: {}", path_, warning);
  Reloaded reloaded{Changes(engine_.policy(), file->policy), file->warnings};
  for (const std::string& change : reloaded.changes) spdlog::info("policy: {}", change);
  engine_.ChangePolicy(file->policy, {reloaded.changes, by});
  loaded_ = clock_.Now();
  problem_.clear();
  spdlog::info("the policy in {} is in force", path_);
  return reloaded;
}

}  // namespace siding
