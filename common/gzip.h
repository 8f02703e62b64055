#pragma once

#include <string>

namespace siding {

// In the format of gzip (RFC 1952), by zlib's fastest level. Empty: zlib could not, for lack of memory. Pure.
std::string Gzip(const std::string& bytes);

}  // namespace siding
