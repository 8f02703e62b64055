#include "page/server/static_files.h"

#include <utility>

namespace siding::page {

StaticFiles::StaticFiles(const std::vector<File>& files) {
  for (const File& file : files)
    entries_[file.path] = {file.content_type, MakeSnapshot(std::string(file.bytes))};
}

const StaticFiles::Entry* StaticFiles::Find(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace siding::page
