// The files of the built page, each in memory once for all that ask for it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "page/app/files.h"
#include "page/server/snapshots.h"

namespace siding::page {

class StaticFiles {
 public:
  struct Entry {
    std::string content_type;
    Snapshot snapshot;
  };

  explicit StaticFiles(const std::vector<File>& files);

  // nullptr: there is none.
  const Entry* Find(const std::string& path) const;
  bool empty() const { return entries_.empty(); }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace siding::page
