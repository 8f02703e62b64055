// A disk that fails once, or from some moment on, for tests.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>

#include "store/disk.h"

namespace siding::store {

enum class Fault {
  kOnce,        // one operation fails
  kForGood,     // all operations that follow fail, too
  kShortWrite,  // a write takes half of the data, and says so
  kTornWrite,   // a write takes half of the data and fails; so do all operations that follow
};

// Counts the operations, from 0, and does what Fail() asks for at one of them. The real disk does the others.
class FaultyDisk final : public Disk {
 public:
  void Fail(int at, Fault fault, int error) {
    count_ = 0;
    at_ = at;
    fault_ = fault;
    error_ = error;
  }
  void Heal() { Fail(-1, Fault::kOnce, 0); }
  bool is_far = false;   // as if over a network
  bool can_link = true;  // else it is one that makes no hard links
  bool can_exchange = true;
  // Called before each folder that gets another name, with the present one; may be empty.
  std::function<void(const std::string&)> before_move;
  // Since the last Fail() or Heal().
  int operations() const { return count_; }

  int Create(const std::string& path) override { return Fails() ? -1 : real_.Create(path); }
  ssize_t Write(int fd, const void* data, size_t size) override {
    const bool half = count_ == at_ && (fault_ == Fault::kShortWrite || fault_ == Fault::kTornWrite);
    const ssize_t written = half ? real_.Write(fd, data, size / 2) : 0;
    if (Fails()) return -1;
    return half ? written : real_.Write(fd, data, size);
  }
  int SyncFile(int fd) override { return Fails() ? -1 : real_.SyncFile(fd); }
  int SyncFolder(const std::string& path) override { return Fails() ? -1 : real_.SyncFolder(path); }
  int MakeFolder(const std::string& path) override { return Fails() ? -1 : real_.MakeFolder(path); }
  int Rename(const std::string& from, const std::string& to) override {
    if (before_move) before_move(from);
    return Fails() ? -1 : real_.Rename(from, to);
  }
  int Exchange(const std::string& one, const std::string& other) override {
    if (before_move) before_move(one);
    if (!can_exchange) errno = EINVAL;
    return Fails() || !can_exchange ? -1 : real_.Exchange(one, other);
  }
  int Link(const std::string& file, const std::string& name) override {
    if (!can_link) errno = EPERM;
    return Fails() || !can_link ? -1 : real_.Link(file, name);
  }
  bool IsNear(const std::string& folder) const override { return !is_far && real_.IsNear(folder); }
  int RemoveFile(const std::string& path) override { return Fails() ? -1 : real_.RemoveFile(path); }
  int RemoveFolder(const std::string& path) override { return Fails() ? -1 : real_.RemoveFolder(path); }
  // Not counted, since it is asked when something else has failed; but what is broken for good fails here,
  // too.
  int64_t FreeSpace(const std::string& path) override {
    return fault_ == Fault::kForGood && at_ >= 0 ? -1 : real_.FreeSpace(path);
  }

 private:
  bool Fails() {
    const int number = count_++;
    if (at_ < 0 || number < at_ || fault_ == Fault::kShortWrite) return false;
    if (number > at_ && fault_ == Fault::kOnce) return false;
    errno = error_;
    return true;
  }

  Disk& real_ = RealDisk();
  std::atomic<int> count_{0};
  int at_ = -1;
  Fault fault_ = Fault::kOnce;
  int error_ = 0;
};

}  // namespace siding::store
