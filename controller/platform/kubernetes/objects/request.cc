#include "controller/platform/kubernetes/objects/request.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

constexpr size_t kLongestBase = 63;  // of a pod's name without its index: the gang's name is a label's value
constexpr size_t kHashLength = 8;

absl::Status WrongField(absl::string_view field, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("spec.", field, ": expected ", expected));
}

std::string BaseNameOf(const Request& request) {
  std::string base = request.name.name.substr(0, kLongestBase - kHashLength - 1);
  while (!base.empty() && !absl::ascii_isalnum(static_cast<unsigned char>(base.back()))) base.pop_back();
  const auto hash = static_cast<uint32_t>(XXH3_64bits(request.uid.data(), request.uid.size()));
  return absl::StrCat(base, "-", absl::Hex(hash, absl::kZeroPad8));
}

absl::StatusOr<Time> TimeIn(const Request& request, absl::string_view field) {
  const Json* said = Find(*request.json, {"spec", field});
  const absl::StatusOr<Time> time =
      ParseTime(said->is_string() ? said->get_ref<const std::string&>() : "", request.created);
  if (!time.ok())
    return WrongField(field, "a time such as 2026-05-01T12:00:00Z, or +60s after the request was made");
  return time;
}

// What siding writes itself may not be in the template: one of the two would be without effect.
absl::Status CheckSaid(const Json& metadata, const char* where) {
  const Json* said = Find(metadata, {where});
  if (said == nullptr) return absl::OkStatus();
  const std::string field = absl::StrCat("template.metadata.", where);
  if (!said->is_object()) return WrongField(field, "names with texts");
  for (const auto& [key, value] : said->items()) {
    if (!value.is_string()) return WrongField(absl::StrCat(field, "[", key, "]"), "a text");
    if (absl::StartsWith(key, kPrefix))
      return WrongField(absl::StrCat(field, "[", key, "]"),
                        "nothing under siding.dev/: what is asked of siding is said by the fields of spec");
  }
  return absl::OkStatus();
}

absl::Status CheckMetadata(const Json& metadata) {
  if (!metadata.is_object()) return WrongField("template.metadata", "labels and annotations");
  for (const auto& [key, value] : metadata.items()) {
    // Programs that write templates write a null there.
    if (key == "labels" || key == "annotations" || (key == "creationTimestamp" && value.is_null())) continue;
    return WrongField(absl::StrCat("template.metadata.", key), "nothing but labels and annotations");
  }
  SIDING_RETURN_IF_ERROR(CheckSaid(metadata, "labels"));
  return CheckSaid(metadata, "annotations");
}

absl::Status CheckTemplate(const Json& json) {
  const Json* pod = Find(json, {"spec", "template"});
  if (pod == nullptr || !pod->is_object()) return WrongField("template", "the template of a pod");
  if (const Json* metadata = Find(*pod, {"metadata"}); metadata != nullptr)
    SIDING_RETURN_IF_ERROR(CheckMetadata(*metadata));
  if (ListAt(*pod, {"spec", "containers"}).empty())
    return WrongField("template.spec.containers", "a container at least");
  if (const Json* scheduler = Find(*pod, {"spec", "schedulerName"});
      scheduler != nullptr && *scheduler != kScheduler)
    return WrongField("template.spec.schedulerName", absl::StrCat(kScheduler, ", or nothing"));
  if (Find(*pod, {"spec", "nodeName"}) != nullptr)
    return WrongField("template.spec.nodeName",
                      "nothing: siding chooses the node; a nodeSelector is honoured");
  for (const Json& gate : ListAt(*pod, {"spec", "schedulingGates"})) {
    if (absl::StartsWith(TextAt(gate, {"name"}), kPrefix))
      return WrongField("template.spec.schedulingGates", "no gate of siding's: its pods wait for it anyway");
  }
  return absl::OkStatus();
}

}  // namespace

Request RequestFrom(const Object& object) {
  const Json& json = *object.json;
  Request request{object.name, object.uid, object.version};
  request.generation = WholeAt(json, {"metadata", "generation"});
  request.created = ParseTime(TextAt(json, {"metadata", "creationTimestamp"}), Time{}).value_or(Time{});
  request.deleting = Find(json, {"metadata", "deletionTimestamp"}) != nullptr;
  request.json = object.json;
  return request;
}

absl::StatusOr<RequestSpec> SpecOf(const Request& request) {
  const Json& json = *request.json;
  RequestSpec spec;
  SIDING_RETURN_IF_ERROR(CheckTemplate(json));
  if (Find(json, {"spec", "count"}) != nullptr) {
    const int64_t count = WholeAt(json, {"spec", "count"});
    if (count < 1 || count > kMostPods)
      return WrongField("count", absl::StrCat("a whole number from 1 to ", kMostPods));
    spec.count = static_cast<int>(count);
  }
  if (Find(json, {"spec", "startBy"}) == nullptr) return WrongField("startBy", "a deadline");
  SIDING_ASSIGN_OR_RETURN(spec.start_by, TimeIn(request, "startBy"));
  if (Find(json, {"spec", "notBefore"}) != nullptr) {
    SIDING_ASSIGN_OR_RETURN(spec.not_before, TimeIn(request, "notBefore"));
    if (*spec.not_before > spec.start_by) return WrongField("notBefore", "a time before startBy");
  }
  if (Find(json, {"spec", "walltime"}) != nullptr) {
    spec.walltime = TextAt(json, {"spec", "walltime"});
    const absl::StatusOr<Duration> length = ParseDuration(spec.walltime);
    if (!length.ok() || *length <= Duration(0))
      return WrongField("walltime", "a duration such as 30s or 10m");
  }
  return spec;
}

std::string PodNameOf(const Request& request, int index) {
  return absl::StrCat(BaseNameOf(request), "-", index);
}

Json PodOf(const Request& request, const RequestSpec& spec, int index) {
  Json metadata = {{"name", PodNameOf(request, index)}, {"namespace", request.name.space}};
  for (const char* where : {"labels", "annotations"}) {
    const Json* said = Find(*request.json, {"spec", "template", "metadata", where});
    if (said != nullptr) metadata[where] = *said;
  }
  const auto ask = [&](const char* key, const std::string& text) {
    metadata["annotations"][absl::StrCat(kPrefix, key)] = text;
  };
  ask("start-by", FormatTime(spec.start_by));
  if (spec.not_before) ask("not-before", FormatTime(*spec.not_before));
  if (!spec.walltime.empty()) ask("walltime", spec.walltime);
  if (spec.count > 1) {
    ask("gang", BaseNameOf(request));
    ask("gang-size", absl::StrCat(spec.count));
  }
  const Resource resource = OnDemandRequests();
  metadata["ownerReferences"] =
      Json::array({{{"apiVersion", absl::StrCat(resource.group, "/", resource.version)},
                    {"kind", "OnDemandRequest"},
                    {"name", request.name.name},
                    {"uid", request.uid},
                    {"controller", true},
                    {"blockOwnerDeletion", true}}});
  Json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}};
  pod["spec"] = *Find(*request.json, {"spec", "template", "spec"});
  pod["spec"]["schedulerName"] = kScheduler;
  return pod;
}

}  // namespace siding::kubernetes
