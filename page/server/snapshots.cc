#include "page/server/snapshots.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/gzip.h"
#include "common/status.h"

namespace siding::page {

namespace {

using Body = std::shared_ptr<const std::string>;

std::string TagOf(const std::string& body) {
  return absl::StrCat("W/\"", body.size(), "-", absl::Hex(std::hash<std::string>()(body)), "\"");
}

// Shorter ones go in one packet anyway.
constexpr size_t kLeastPacked = 1000;

// `all` and `own` have its size while it is anywhere.
Body Counted(std::string body, const Snapshots::Bytes& all, const Snapshots::Bytes& own) {
  *all += body.size();
  *own += body.size();
  return Body(new std::string(std::move(body)), [all, own](const std::string* gone) {
    *all -= gone->size();
    *own -= gone->size();
    delete gone;
  });
}

Snapshot Make(std::string body, const Snapshots::Bytes& all, const Snapshots::Bytes& own) {
  Snapshot snapshot;
  snapshot.tag = TagOf(body);
  if (std::string packed = body.size() < kLeastPacked ? "" : Gzip(body); !packed.empty())
    snapshot.packed = Counted(std::move(packed), all, own);
  snapshot.body = Counted(std::move(body), all, own);
  return snapshot;
}

}  // namespace

Snapshot MakeSnapshot(std::string body) {
  const auto nobodys = std::make_shared<std::atomic<size_t>>();
  return Make(std::move(body), nobodys, nobodys);
}

Time Snapshots::Until(Time began) const {
  // Not from its beginning: one that takes long would be over when it is made, for all who have waited for
  // it.
  const Time made = clock_.Now();
  return made + std::max(moment_, kShare * (made - began));
}

absl::Status Snapshots::CheckUnread(size_t bytes, size_t most, const char* whose) {
  if (bytes < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("there are ", bytes >> 20, " MiB of answers", whose,
                                                   " that have not been read; the limit is ", most >> 20,
                                                   " MiB: try again"));
}

absl::Status Snapshots::CheckUnread() {
  if (*bytes_ >= most_unread_ || *own_bytes_ >= most_own_) kept_.clear();  // what is left then is unread
  SIDING_RETURN_IF_ERROR(CheckUnread(*own_bytes_, most_own_, " to you"));
  return CheckUnread(*bytes_, most_unread_, "");
}

absl::StatusOr<Snapshot> Snapshots::Of(const std::string& key,
                                       const std::function<absl::StatusOr<std::string>()>& make) {
  MutexLock lock(mutex_);
  const Time began = clock_.Now();
  std::erase_if(kept_, [&](const auto& kept) { return began >= kept.second.until; });
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second.snapshot;
  SIDING_RETURN_IF_ERROR(CheckUnread());
  SIDING_ASSIGN_OR_RETURN(std::string body, make());
  Snapshot snapshot = Make(std::move(body), bytes_, own_bytes_);
  snapshot.since = began;
  if (kept_.size() >= kMost) kept_.clear();
  kept_[key] = {Until(began), snapshot};
  return snapshot;
}

absl::StatusOr<Snapshot> Snapshots::Once(const std::function<std::string()>& make) {
  MutexLock lock(mutex_);
  SIDING_RETURN_IF_ERROR(CheckUnread());
  const Time began = clock_.Now();
  Snapshot snapshot = Make(make(), bytes_, own_bytes_);
  snapshot.since = began;
  return snapshot;
}

void Snapshots::Forget() {
  MutexLock lock(mutex_);
  const Time now = clock_.Now();
  std::erase_if(kept_, [&](const auto& kept) { return now >= kept.second.until; });
}

}  // namespace siding::page
