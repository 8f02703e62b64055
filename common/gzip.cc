#include "common/gzip.h"

#include <zlib.h>

namespace siding {

std::string Gzip(const std::string& bytes) {
  constexpr int kWindowBits = 15, kGzip = 16, kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kWindowBits + kGzip, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return "";
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  // zlib reads it alone, and its interface is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = deflate(&stream, Z_FINISH);
  packed.resize(result == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  packed.shrink_to_fit();  // it was as long as the worst case
  return packed;
}

}  // namespace siding
