#include "store/checksum.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "common/status.h"

namespace siding::store {
namespace {

// Small enough to stay in the second-level cache between the read and the hash.
constexpr int64_t kPiece = 1 << 20;

std::string Format(const XXH128_hash_t& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "xxh3:";
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

StreamHash::StreamHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void StreamHash::Update(const void* data, size_t size) { XXH3_128bits_update(state_.get(), data, size); }

std::string StreamHash::Checksum() const { return Format(XXH3_128bits_digest(state_.get())); }

std::string ChecksumOf(absl::string_view data) { return Format(XXH3_128bits(data.data(), data.size())); }

absl::Status HashRange(int fd, int64_t begin, int64_t end, StreamHash& hash,
                       const std::function<bool(int64_t)>& done) {
  if (begin >= end) return absl::OkStatus();
  const auto buffer =
      std::make_unique_for_overwrite<char[]>(static_cast<size_t>(std::min(kPiece, end - begin)));
  while (begin < end) {
    const ssize_t n = pread(fd, buffer.get(), static_cast<size_t>(std::min(kPiece, end - begin)), begin);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read");
    if (n == 0) return absl::DataLossError(absl::StrCat("ends at byte ", begin, ", expected ", end));
    hash.Update(buffer.get(), static_cast<size_t>(n));
    begin += n;
    if (done && !done(n)) return absl::CancelledError("called off");
  }
  return absl::OkStatus();
}

void RunInParallel(size_t count, size_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> helpers;  // joined at the end of this scope
  try {
    for (size_t i = 1; i < std::min(count, threads); ++i) helpers.emplace_back(run);
  } catch (const std::system_error&) {
    // No more threads to be had: those there are do all of it.
  }
  run();
}

}  // namespace siding::store
