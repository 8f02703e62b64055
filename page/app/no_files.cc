// In the place of the built page, where none is built.
#include "page/app/files.h"

namespace siding::page {

const std::vector<File>& Files() {
  static const auto* const files = new std::vector<File>;
  return *files;
}

}  // namespace siding::page
