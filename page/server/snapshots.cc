#include "page/server/snapshots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::page {

Snapshot MakeSnapshot(std::string body) {
  Snapshot snapshot;
  snapshot.tag = absl::StrCat("\"", body.size(), "-", absl::Hex(std::hash<std::string>()(body)), "\"");
  snapshot.body = std::make_shared<const std::string>(std::move(body));
  return snapshot;
}

absl::StatusOr<Snapshot> Snapshots::Of(const std::string& key,
                                       const std::function<absl::StatusOr<std::string>()>& make) {
  MutexLock lock(mutex_);
  const Time began = clock_.Now();
  std::erase_if(kept_, [&](const auto& kept) { return began >= kept.second.until; });
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second.snapshot;
  SIDING_ASSIGN_OR_RETURN(std::string body, make());
  Snapshot snapshot = MakeSnapshot(std::move(body));
  if (kept_.size() >= kMost) kept_.clear();
  // Not from its beginning: one that takes long would be over when it is made, for all who have waited for it.
  const Time made = clock_.Now();
  kept_[key] = {made + std::max(moment_, kShare * (made - began)), snapshot};
  return snapshot;
}

}  // namespace siding::page
