// Bodies as browsers take them: a list in JSON is a tenth of its size then. Pure functions.
#pragma once

#include <string>

namespace siding::page {

// In the format of gzip (RFC 1952), by zlib's fastest level: an answer is made anew every moment. Empty: zlib
// could not, for lack of memory.
std::string Gzip(const std::string& bytes);

// Whether one who says so in `Accept-Encoding` takes it (RFC 9110, 12.5.3). Who says nothing is sent it
// plain.
bool TakesGzip(const std::string& accept_encoding);

}  // namespace siding::page
