// The built page, embedded in the program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siding::page {

struct File {
  std::string path;  // "/page.js"
  std::string content_type;
  std::string_view bytes;
};

// None: it was built without the page (SIDING_PAGE).
const std::vector<File>& Files();

}  // namespace siding::page
