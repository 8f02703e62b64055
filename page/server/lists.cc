#include "page/server/lists.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "page/server/json.h"

namespace siding::page {

void Lists::Forget() {
  MutexLock lock(mutex_);
  ForgetAt(clock_.Now());
}

void Lists::ForgetAt(Time now) {
  std::erase_if(kept_, [&](const auto& kept) { return now - kept.second.asked >= kForgotten; });
}

Lists::Kept& Lists::Find(const std::string& key, Time now) {
  ForgetAt(now);
  if (kept_.size() >= kMost && !kept_.contains(key)) {
    kept_.erase(std::min_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
      return a.second.asked < b.second.asked;
    }));
  }
  Kept& kept = kept_.try_emplace(key, memory_).first->second;
  kept.asked = now;
  return kept;
}

absl::StatusOr<Snapshot> Lists::Of(const std::string& key, const std::string& since,
                                   const std::function<absl::StatusOr<v1::ListJobsResponse>()>& ask) {
  MutexLock lock(mutex_);
  const Time began = clock_.Now();
  Kept& kept = Find(key, began);
  bool fits = true;
  if (began >= kept.until) {
    SIDING_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, ask());
    std::vector<ChangingList::Entry> entries;
    entries.reserve(static_cast<size_t>(jobs.jobs_size()));
    for (const v1::Job& job : jobs.jobs()) entries.push_back({job.id(), ToJson(job)});
    kept.list.Update(std::move(entries));
    fits = kept.memory.Resize(kept.list.bytes());
    kept.since = began;
    const Time made = clock_.Now();
    kept.until = std::max(snapshots_.Until(began), made + std::min<Duration>(kShare * (made - began), kWait));
  }
  const std::string version = kept.list.version();
  const Time as_of = kept.since;
  std::optional<std::string> changes = kept.list.Changes(since);
  auto snapshot = changes ? snapshots_.Once([&] { return *std::move(changes); })
                          : snapshots_.Of(absl::StrCat(key, " ", version), [&] { return kept.list.Whole(); });
  if (!fits) kept_.erase(key);
  if (!snapshot.ok()) return snapshot.status();
  snapshot->since = as_of;
  snapshot->tag = absl::StrCat("W/\"", version, "\"");
  return snapshot;
}

}  // namespace siding::page
