// Puts a changed policy file in force without a restart. A bad one leaves the old one as it is, and says so.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "controller/engine/engine.h"

namespace siding {

// Thread-safe.
class PolicyWatcher {
 public:
  // `path` empty: there is nothing to watch, and the defaults are in force. Otherwise the file as it is now
  // is in force already. What is passed in must outlive this.
  PolicyWatcher(std::string path, Engine& engine, const Clock& clock);

  // Empty: none.
  const std::string& file() const { return path_; }

  // For the main loop: looks at the file about once a second, and loads it if it has changed.
  void Look();

  struct Reloaded {
    std::vector<std::string> changes;  // see policy/policy_text.h
    std::vector<std::string> warnings;
  };
  // Loads it now. kFailedPrecondition if it cannot be put in force, naming file, line and what was expected.
  // `by`: who asks for it; empty: nobody does, as when a controller takes over.
  absl::StatusOr<Reloaded> Reload(const std::string& by = "");

  struct InForce {
    Policy policy;
    Time loaded;          // when it was put in force, or found to say what is in force
    std::string problem;  // why what is in the file now is not in force; empty: it is
  };
  InForce Current() const;

 private:
  absl::StatusOr<Reloaded> Load(const std::string& by) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  Engine& engine_;
  const Clock& clock_;

  mutable Mutex mutex_;
  std::filesystem::file_time_type changed_ ABSL_GUARDED_BY(mutex_);
  Time loaded_ ABSL_GUARDED_BY(mutex_);
  std::string problem_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace siding
