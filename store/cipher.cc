#include "store/cipher.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/files.h"
#include "common/status.h"
#include "store/checksum.h"

namespace siding::store {
namespace {

constexpr size_t kPlainChunk = 64 << 10;
constexpr size_t kOverhead = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr size_t kHeader = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr unsigned char kMore = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
constexpr unsigned char kLast = crypto_secretstream_xchacha20poly1305_TAG_FINAL;
static_assert(crypto_secretstream_xchacha20poly1305_KEYBYTES == SecretKey::kSize);

using Buffer = std::unique_ptr<unsigned char[]>;
using State = crypto_secretstream_xchacha20poly1305_state;

// Looks, the first time, which instructions this machine has: without that all works as well, but slowly.
absl::Status PrepareLibrary() {
  return sodium_init() >= 0 ? absl::OkStatus() : absl::InternalError("libsodium cannot be used");
}

const unsigned char* AsBytes(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Reads `size` bytes, or what is left of the file.
absl::StatusOr<size_t> ReadUpTo(int fd, unsigned char* data, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = read(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read " + path);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

// A new file, which is removed again unless it is kept.
class Output {
 public:
  Output(Disk& disk, std::string path)
      : disk_(disk), path_(std::move(path)), fd_(disk.Create(path_)), error_(errno) {}
  ~Output() {
    if (fd_.valid() && !kept_) disk_.RemoveFile(path_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  absl::Status Created() const {
    return fd_.valid() ? absl::OkStatus() : ErrnoError(error_, "create " + path_);
  }
  absl::Status Write(const unsigned char* data, size_t size) {
    return WriteAll(disk_, fd_.get(), {reinterpret_cast<const char*>(data), size}, path_);
  }
  absl::Status Sync() {
    return disk_.SyncFile(fd_.get()) == 0 ? absl::OkStatus() : ErrnoError(errno, "fdatasync " + path_);
  }
  void Keep() { kept_ = true; }

 private:
  Disk& disk_;
  const std::string path_;
  const UniqueFd fd_;
  const int error_;
  bool kept_ = false;
};

}  // namespace

absl::StatusOr<Encrypted> EncryptFile(Disk& disk, const std::string& from, const std::string& to,
                                      const std::string& name, const SecretKey& key) {
  SIDING_RETURN_IF_ERROR(PrepareLibrary());
  SIDING_ASSIGN_OR_RETURN(const UniqueFd input, OpenRegular(from));
  Output output(disk, to);
  SIDING_RETURN_IF_ERROR(output.Created());
  Encrypted result;
  StreamHash hash;
  const auto put = [&](const unsigned char* data, size_t size) {
    hash.Update(data, size);
    result.size += static_cast<int64_t>(size);
    return output.Write(data, size);
  };
  State state;
  unsigned char header[kHeader];
  crypto_secretstream_xchacha20poly1305_init_push(&state, header, key.data());
  SIDING_RETURN_IF_ERROR(put(header, sizeof header));
  // One chunk ahead, to know the last one when it comes.
  Buffer plain(new unsigned char[kPlainChunk]), next(new unsigned char[kPlainChunk]);
  const Buffer sealed(new unsigned char[kPlainChunk + kOverhead]);
  SIDING_ASSIGN_OR_RETURN(size_t size, ReadUpTo(input.get(), plain.get(), kPlainChunk, from));
  for (bool last = false; !last;) {
    SIDING_ASSIGN_OR_RETURN(const size_t next_size, ReadUpTo(input.get(), next.get(), kPlainChunk, from));
    last = next_size == 0;
    crypto_secretstream_xchacha20poly1305_push(&state, sealed.get(), nullptr, plain.get(), size,
                                               AsBytes(name), name.size(), last ? kLast : kMore);
    SIDING_RETURN_IF_ERROR(put(sealed.get(), size + kOverhead));
    plain.swap(next);
    size = next_size;
  }
  SIDING_RETURN_IF_ERROR(output.Sync());
  output.Keep();
  result.checksum = hash.Checksum();
  return result;
}

absl::Status DecryptFile(Disk& disk, const std::string& from, const std::string& to, const std::string& name,
                         const SecretKey& key, const std::function<bool()>& stop) {
  SIDING_RETURN_IF_ERROR(PrepareLibrary());
  SIDING_ASSIGN_OR_RETURN(const UniqueFd input, OpenRegular(from));
  Output output(disk, to);
  SIDING_RETURN_IF_ERROR(output.Created());
  const absl::Status foreign = absl::DataLossError(from + " is not what was encrypted");
  unsigned char header[kHeader];
  State state;
  SIDING_ASSIGN_OR_RETURN(const size_t got, ReadUpTo(input.get(), header, sizeof header, from));
  if (got != kHeader || crypto_secretstream_xchacha20poly1305_init_pull(&state, header, key.data()) != 0)
    return foreign;
  const Buffer sealed(new unsigned char[kPlainChunk + kOverhead]);
  const Buffer plain(new unsigned char[kPlainChunk]);
  for (unsigned char tag = kMore; tag != kLast;) {
    if (stop && stop()) return absl::CancelledError("called off");
    SIDING_ASSIGN_OR_RETURN(const size_t size,
                            ReadUpTo(input.get(), sealed.get(), kPlainChunk + kOverhead, from));
    unsigned long long plain_size = 0;
    if (size < kOverhead ||
        crypto_secretstream_xchacha20poly1305_pull(&state, plain.get(), &plain_size, &tag, sealed.get(), size,
                                                   AsBytes(name), name.size()) != 0) {
      return foreign;
    }
    SIDING_RETURN_IF_ERROR(output.Write(plain.get(), static_cast<size_t>(plain_size)));
  }
  SIDING_ASSIGN_OR_RETURN(const size_t more, ReadUpTo(input.get(), sealed.get(), 1, from));
  if (more != 0) return foreign;
  output.Keep();
  return absl::OkStatus();
}

}  // namespace siding::store
