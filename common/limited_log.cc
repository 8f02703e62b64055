#include "common/limited_log.h"

#include "absl/strings/str_cat.h"
#include "common/logging.h"

namespace siding {
namespace {

constexpr char kOthers[] = "others";

}  // namespace

void LimitedLog::Warn(const std::string& whose, const std::string& line) {
  for (const std::string& text : Take(whose, line, Clock::now())) spdlog::warn("{}", text);
}

std::vector<std::string> LimitedLog::Take(const std::string& whose, const std::string& line,
                                          Clock::time_point now) {
  std::vector<std::string> lines;
  MutexLock lock(mutex_);
  // The next warning also reports the names that have become quiet.
  for (auto it = by_name_.begin(); it != by_name_.end();) {
    const auto& [name, written] = *it;
    if (now - written.since < kPeriod) {
      ++it;
      continue;
    }
    if (written.lines > kMost)
      lines.push_back(absl::StrCat(name, ": ", written.lines - kMost, " more lines were left out"));
    it = by_name_.erase(it);
  }
  const bool apart = by_name_.contains(whose) || by_name_.size() < kMostNames;
  Written& written = by_name_[apart ? whose : kOthers];
  if (written.lines++ == 0) written.since = now;
  if (written.lines <= kMost) lines.push_back(line);
  if (written.lines == kMost)
    lines.push_back(absl::StrCat(whose, ": further lines are counted only, for a minute"));
  return lines;
}

}  // namespace siding
