// How much memory the lists of all readers take together: each reader sees another one of the same cluster.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace siding::page {

// Thread-safe, but for each Share.
class ListMemory {
 public:
  static constexpr size_t kMost = 256 << 20;

  explicit ListMemory(size_t most = kMost) : most_(most) {}

  // Of one list, until this is destroyed.
  class Share {
   public:
    explicit Share(std::shared_ptr<ListMemory> of) : of_(std::move(of)) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { of_->taken_ -= bytes_; }
    // False: there is no more so much, and it has what it had.
    bool Resize(size_t bytes) {
      const bool fits = of_->taken_.fetch_add(bytes) + bytes - bytes_ <= of_->most_;
      of_->taken_ -= fits ? bytes_ : bytes;
      if (fits) bytes_ = bytes;
      return fits;
    }

   private:
    const std::shared_ptr<ListMemory> of_;
    size_t bytes_ = 0;
  };

 private:
  const size_t most_;
  std::atomic<size_t> taken_ = 0;
};

}  // namespace siding::page
