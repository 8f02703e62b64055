#include "page/server/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace siding::page {

bool ByteStream::Write(const std::string& bytes) {
  MutexLock lock(mutex_);
  if (ended_) return false;
  if (unread_.size() + bytes.size() > most_) {
    EndLocked();
    return false;
  }
  unread_ += bytes;
  Wake();
  return true;
}

size_t ByteStream::Unread() const {
  MutexLock lock(mutex_);
  return unread_.size();
}

bool ByteStream::HasEnded() const {
  MutexLock lock(mutex_);
  return ended_;
}

ssize_t ByteStream::Read(char* to, size_t most, const std::function<void()>& pause,
                         std::function<void()> resume) {
  MutexLock lock(mutex_);
  if (ended_) return kEnd;
  if (unread_.empty()) {
    pause();
    resume_ = std::move(resume);
    return kNothingYet;
  }
  const size_t size = std::min(most, unread_.size());
  memcpy(to, unread_.data(), size);
  unread_.erase(0, size);
  return static_cast<ssize_t>(size);
}

void ByteStream::End() {
  MutexLock lock(mutex_);
  EndLocked();
}

void ByteStream::EndLocked() {
  ended_ = true;
  unread_ = std::string();
  Wake();
}

void ByteStream::Wake() {
  if (auto resume = std::exchange(resume_, nullptr)) resume();
}

}  // namespace siding::page
