// The files of one memory in a new image, that has parents: a pagemap, and the pages that are in none of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/memory/pagemap.h"
#include "common/files.h"

namespace siding {

// In the order of addresses. Both are written beside the files whose places they take. Not thread-safe.
class NewPages {
 public:
  // In `folder`; `name` is the pagemap's, and `old` what it says now.
  NewPages(std::string folder, std::string name, const Pagemap& old);
  absl::Status Open();
  // Pages that are added from now on are of a run of their own.
  void BeginRun() { new_run_ = true; }
  void Keep(const PageRun& run) { pagemap_.runs.push_back(run); }
  void AddShared(uint64_t address, uint64_t pages) { Add(address, pages, kPageInParent); }
  absl::Status AddNew(uint64_t address, uint64_t pages, uint32_t flags, const char* bytes);
  // A run of them, some at a time: `read` gets bytes of it. What `may_go_on` says that is not OK ends it.
  absl::Status AddFrom(const PageRun& run, const std::function<absl::Status()>& may_go_on,
                       const std::function<absl::Status(uint64_t from, uint64_t bytes, char* to)>& read);
  // Writes what is left, and the pagemap.
  absl::Status Finish();
  // After Finish(): they take their places.
  absl::Status Replace() const;

  const std::string& pages_name() const { return pages_; }
  std::vector<std::string> unfinished() const;  // the names that they have before
  uint64_t bytes() const { return bytes_; }     // of new pages
  const Pagemap& pagemap() const { return pagemap_; }

 private:
  std::string Unfinished(const std::string& name) const;
  void Add(uint64_t address, uint64_t pages, uint32_t flags);
  absl::Status Flush();

  const std::string folder_, name_, pages_;
  UniqueFd fd_;
  Pagemap pagemap_;
  std::string buffer_;
  uint64_t bytes_ = 0;
  bool new_run_ = true;
};

}  // namespace siding
