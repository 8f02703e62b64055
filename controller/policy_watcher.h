// Puts a changed policy file in force without a restart. A bad one leaves the old one as it is, and says so.
#pragma once

#include <filesystem>
#include <string>

#include "common/units.h"
#include "controller/engine/engine.h"

namespace siding {

// Not thread-safe: for the main loop.
class PolicyWatcher {
 public:
  // `path` empty: there is nothing to watch. The file as it is now is in force already.
  PolicyWatcher(std::string path, Engine& engine);
  // Looks at the file about once a second, or at once if `now`; loads it if it has changed, or if `now`.
  void Look(bool now = false);

 private:
  void Load();

  const std::string path_;
  Engine& engine_;
  std::filesystem::file_time_type changed_;
  int calls_ = 0;
};

}  // namespace siding
