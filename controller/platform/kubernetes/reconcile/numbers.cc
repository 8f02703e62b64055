#include "controller/platform/kubernetes/reconcile/numbers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

constexpr int64_t kBlock = 100;
constexpr int64_t kLast = std::numeric_limits<uint32_t>::max();
constexpr int kAttempts = 5;

Json ConfigMap(const ObjectName& name, int64_t next) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name.name}, {"namespace", name.space}}},
          {"data", {{"next", absl::StrCat(next)}}}};
}

}  // namespace

absl::StatusOr<JobId> Numbers::Next(JobId highest) {
  if (next_ == end_ || next_ <= highest.value()) SIDING_RETURN_IF_ERROR(TakeBlock(highest.value() + 1));
  return JobId(next_++);
}

// After any failure it is read again: what was asked may have been done.
absl::Status Numbers::TakeBlock(int64_t least) {
  absl::Status last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const absl::StatusOr<Object> now = client_.Get(ConfigMaps(), where_);
    if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
    int64_t first = least;
    if (!now.ok()) {
      last = client_.Create(ConfigMaps(), where_.space, ConfigMap(where_, first + kBlock)).status();
    } else {
      const bool is_number = absl::SimpleAtoi(TextAt(*now->json, {"data", "next"}), &first) && first >= 1;
      first = std::max(first, least);
      if (!is_number || first > kLast - kBlock)
        return absl::FailedPreconditionError(absl::StrCat("ConfigMap ", ToString(where_),
                                                          ": data.next: expected a number from 1 to ",
                                                          kLast - kBlock, ", beyond all that pods have"));
      const Json patch = {{"metadata", {{"resourceVersion", now->version}}},
                          {"data", {{"next", absl::StrCat(first + kBlock)}}}};
      last = client_.MergePatch(ConfigMaps(), where_, patch).status();
    }
    if (last.ok()) {
      next_ = first;
      end_ = first + kBlock;
      return absl::OkStatus();
    }
    if (!absl::IsAborted(last) && !absl::IsAlreadyExists(last)) return last;
  }
  return last;
}

absl::Status NumberPods(const JobTable::Without& pods, Numbers& numbers, const Seal& seal,
                        ApiClient& client) {
  std::map<std::pair<std::string, std::string>, JobId> gangs;  // by namespace and name: that got theirs now
  for (const JobTable::Unnumbered& pod : pods.pods) {
    const std::pair gang(pod.pod.space, pod.gang_name);
    std::optional<JobId> number = pod.heir ? pod.heir : pod.gang;
    if (const auto known = gangs.find(gang); !number && known != gangs.end()) number = known->second;
    if (!number) {
      SIDING_ASSIGN_OR_RETURN(number, numbers.Next(pods.highest));
    }
    const std::string text = absl::StrCat(number->value());
    // What somebody else wrote there goes.
    const std::string starts = pod.starts > 1 ? absl::StrCat(pod.starts) : "";
    const Json marks = {{absl::StrCat(kPrefix, kJobMark), text},
                        {absl::StrCat(kPrefix, kStartsMark), starts.empty() ? Json() : Json(starts)},
                        {absl::StrCat(kPrefix, kSealMark), seal.Of(pod.uid, text, starts)}};
    const Json patch = {{"metadata", {{"resourceVersion", pod.version}, {"annotations", marks}}}};
    // If it fails the rest of a gang must wait: what the first one has now is not known.
    SIDING_RETURN_IF_ERROR(client.MergePatch(Pods(), pod.pod, patch).status());
    if (!pod.gang_name.empty()) gangs.emplace(gang, *number);
  }
  return absl::OkStatus();
}

}  // namespace siding::kubernetes
