#include "controller/platform/kubernetes/reconcile/numbers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"

namespace siding::kubernetes {
namespace {

constexpr int64_t kLargestBlock = 100;
constexpr int64_t kLast = std::numeric_limits<uint32_t>::max();
constexpr int kAttempts = 5;

Json ConfigMap(const ObjectName& name, int64_t next) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name.name}, {"namespace", name.space}}},
          {"data", {{"next", absl::StrCat(next)}}}};
}

}  // namespace

absl::StatusOr<JobId> Numbers::Next(JobId highest, int64_t needed) {
  if (next_ == end_ || next_ <= highest.value()) {
    SIDING_RETURN_IF_ERROR(
        TakeBlock(std::max(highest.value() + 1, next_), std::clamp<int64_t>(needed, 1, kLargestBlock)));
  }
  return JobId(next_++);
}

// After any failure it is read again: what was asked may have been done.
absl::Status Numbers::TakeBlock(int64_t least, int64_t size) {
  absl::Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const absl::StatusOr<Object> now = client_.Get(ConfigMaps(), where_);
    if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
    int64_t first = least;
    if (!now.ok()) {
      last = client_.Create(ConfigMaps(), where_.space, ConfigMap(where_, first + size)).status();
    } else {
      const bool is_number = absl::SimpleAtoi(TextAt(*now->json, {"data", "next"}), &first) && first >= 1;
      first = std::max(first, least);
      if (!is_number || first > kLast - kLargestBlock)
        return absl::FailedPreconditionError(
            absl::StrCat("ConfigMap ", ToString(where_), ": data.next: expected a number from 1 to ",
                         kLast - kLargestBlock, ", beyond all that pods have"));
      const Json patch = {{"metadata", {{"resourceVersion", now->version}}},
                          {"data", {{"next", absl::StrCat(first + size)}}}};
      last = client_.MergePatch(ConfigMaps(), where_, patch).status();
    }
    if (last.ok()) {
      next_ = first;
      end_ = first + size;
      return absl::OkStatus();
    }
    if (!absl::IsAborted(last) && !absl::IsAlreadyExists(last)) return last;
  }
  return last;
}

absl::Status NumberPods(const JobTable::Without& pods, Numbers& numbers, const Seal& seal, ApiClient& client,
                        const OnNumbered& heard) {
  std::map<std::pair<std::string, std::string>, JobId> gangs;  // by namespace and name: that got theirs now
  std::set<std::pair<std::string, std::string>> left;          // of these nobody is tried any more
  auto needed = static_cast<int64_t>(pods.pods.size());
  for (const JobTable::Unnumbered& pod : pods.pods) {
    const int64_t more = needed--;
    const std::pair gang(pod.pod.space, pod.gang_name);
    if (left.contains(gang)) continue;
    std::optional<JobId> number = pod.heir ? pod.heir : pod.gang;
    if (const auto known = gangs.find(gang); !number && known != gangs.end()) number = known->second;
    if (!number) {
      SIDING_ASSIGN_OR_RETURN(number, numbers.Next(pods.highest, more));
    }
    const std::string text = absl::StrCat(number->value());
    // What somebody else wrote there goes.
    const std::string starts = pod.starts > 1 ? absl::StrCat(pod.starts) : "";
    const Json marks = {{absl::StrCat(kPrefix, kJobMark), text},
                        {absl::StrCat(kPrefix, kStartsMark), starts.empty() ? Json() : Json(starts)},
                        {absl::StrCat(kPrefix, kSealMark), seal.Of(pod.uid, text, starts)}};
    const Json patch = {{"metadata", {{"resourceVersion", pod.version}, {"annotations", marks}}}};
    const absl::Status done = client.MergePatch(Pods(), pod.pod, patch).status();
    if (!done.ok() && !IsOfOneObject(done)) return done;
    heard(pod, done);
    if (pod.gang_name.empty()) continue;
    if (done.ok()) {
      gangs.emplace(gang, *number);
    } else {
      left.insert(gang);
    }
  }
  return absl::OkStatus();
}

}  // namespace siding::kubernetes
