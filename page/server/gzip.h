// Bodies as browsers take them: a list in JSON is a tenth of its size then. Pure.
#pragma once

#include <string>

namespace siding::page {

// Whether one who says so in `Accept-Encoding` takes it (RFC 9110, 12.5.3). Who says nothing is sent it
// plain.
bool TakesGzip(const std::string& accept_encoding);

}  // namespace siding::page
