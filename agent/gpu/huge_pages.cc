#include "agent/gpu/huge_pages.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/os/processes.h"
#include "common/files.h"
#include "common/logging.h"

namespace siding {
namespace {

// What the file of holders says: the setting before the first of them, and who they are, as "PID START".
struct Holders {
  std::string before;
  std::vector<std::string> living;
};

std::string Self() {
  const auto stat = ReadProcessStat(getpid());
  return absl::StrCat(getpid(), " ", stat ? stat->start_time : 0);
}

Holders Read(const std::string& path) {
  Holders holders;
  std::ifstream in(path);
  std::getline(in, holders.before);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    pid_t pid = 0;
    uint64_t start = 0;
    if (words >> pid >> start && IsAlive(pid, start)) holders.living.push_back(line);
  }
  return holders;
}

// "madvise" of "always [madvise] never".
std::string Chosen(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return "";
  const size_t from = text->find('['), to = text->find(']');
  return from == std::string::npos || to == std::string::npos ? "" : text->substr(from + 1, to - from - 1);
}

// In place: the kernel's file cannot be replaced.
bool Write(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  return file.valid() && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

HugePages::HugePages(std::string setting, std::string holders)
    : setting_(std::move(setting)), holders_(std::move(holders)) {
  Apply(false);
}

std::unique_ptr<HugePages::Hold> HugePages::Take() {
  MutexLock lock(mutex_);
  if (holds_ == 0) held_ = Apply(true);
  if (!held_) return nullptr;
  ++holds_;
  return std::make_unique<Hold>(this);
}

void HugePages::Release() {
  MutexLock lock(mutex_);
  if (--holds_ == 0) held_ = Apply(false);
}

bool HugePages::Apply(bool hold) {
  const UniqueFd lock(open(holders_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid() || flock(lock.get(), LOCK_EX) != 0) return false;
  Holders holders = Read(holders_);
  const std::string self = Self();
  std::erase(holders.living, self);
  // What an earlier holder left behind is not the site's choice.
  if (holders.before.empty()) holders.before = Chosen(setting_);
  if (hold) {
    if (holders.before != "madvise") return false;
    holders.living.push_back(self);
  }
  if (holders.living.empty()) {
    if (Chosen(setting_) != holders.before && !Write(setting_, holders.before))
      spdlog::error("{} could not be put back to {}", setting_, holders.before);
    Write(holders_, "");
    return false;
  }
  // First who to put it back for, then the change.
  std::string text = holders.before + "\n";
  for (const std::string& holder : holders.living) text += holder + "\n";
  return Write(holders_, text) && Write(setting_, "always");
}

}  // namespace siding
