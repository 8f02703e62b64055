// Files written so that a power cut leaves the old content or the new, never a mixture.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

// The whole file. NotFound if there is none.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes beside `path`, syncs, renames over it, syncs the folder. On failure nothing is left behind.
absl::Status WriteFileDurably(const std::string& path, absl::string_view content, int mode = 0644);

// The same atomic replacement without the syncs, for state that only has to survive our own death.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content, int mode = 0644);

absl::Status SyncDirectory(const std::string& path);
absl::Status MakeDirectories(const std::string& path, int mode = 0755);

// Owns one descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// What is left of an open file, but no more than `most` bytes. `path` is for errors.
absl::StatusOr<std::string> ReadAll(const UniqueFd& fd, const std::string& path, size_t most = SIZE_MAX);

// Writes `data` from the descriptor's position on. `path` names it in messages.
absl::Status WriteAll(const UniqueFd& fd, absl::string_view data, const std::string& path);

}  // namespace siding
