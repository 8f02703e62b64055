#include "controller/platform/kubernetes/reconcile/events.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace siding::kubernetes {

absl::Status Report(ApiClient& client, const PodEvent& event, Time now) {
  const std::string key =
      absl::StrCat(event.uid, " ", event.reason, " ", event.key.empty() ? event.text : event.key);
  const auto hash = absl::Hex(XXH3_64bits(key.data(), key.size()), absl::kZeroPad16);
  const std::string time = FormatTime(now);
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata", {{"name", absl::StrCat(event.pod.name, ".", hash)}, {"namespace", event.pod.space}}},
      {"involvedObject",
       {{"apiVersion", "v1"},
        {"kind", "Pod"},
        {"namespace", event.pod.space},
        {"name", event.pod.name},
        {"uid", event.uid}}},
      {"type", event.warning ? "Warning" : "Normal"},
      {"reason", event.reason},
      {"message", event.text},
      {"source", {{"component", "siding"}}},
      {"firstTimestamp", time},
      {"lastTimestamp", time},
      {"count", 1}};
  const absl::Status made = client.Create(Events(), event.pod.space, body).status();
  return absl::IsAlreadyExists(made) ? absl::OkStatus() : made;
}

}  // namespace siding::kubernetes
