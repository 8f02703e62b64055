#include "controller/platform/kubernetes/objects/admission.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/asks.h"
#include "controller/platform/kubernetes/objects/marks.h"
#include "controller/platform/kubernetes/objects/pod.h"
#include "controller/platform/kubernetes/objects/request.h"
#include "controller/platform/kubernetes/objects/saving.h"

namespace siding::kubernetes {
namespace {

// kubectl shows no message of what is "Invalid" without details.
constexpr int kBadRequest = 400;

// The object that is asked about, as it would be.
struct Subject {
  std::string kind;
  ObjectName name;
  const Json* object = nullptr;
  const Json* before = nullptr;  // nullptr: it is new
};

// What makes the pods of a template, as the pods would name it; nullptr: no pods are made of this kind.
const char* MakerOf(const std::string& kind) {
  static const std::map<std::string, const char*> kMakers = {
      {"CronJob", "Job"},
      {"DaemonSet", "DaemonSet"},
      {"Deployment", "ReplicaSet"},
      {"Job", "Job"},
      {"ReplicaSet", "ReplicaSet"},
      {"ReplicationController", "ReplicationController"},
      {"StatefulSet", "StatefulSet"}};
  const auto maker = kMakers.find(kind);
  return maker == kMakers.end() ? nullptr : maker->second;
}

std::string PlaceOfTemplate(const std::string& kind) {
  if (kind == "Pod") return "";
  return kind == "CronJob" ? "spec.jobTemplate.spec.template." : "spec.template.";
}

// The pod that is described there; nothing: none is.
std::optional<Pod> PodIn(const Subject& subject, const Json* object, Time now) {
  if (object == nullptr) return std::nullopt;
  const Json* described = object;
  if (subject.kind == "CronJob") {
    described = Find(*object, {"spec", "jobTemplate", "spec", "template"});
  } else if (subject.kind != "Pod") {
    described = Find(*object, {"spec", "template"});
  }
  if (described == nullptr || !described->is_object()) return std::nullopt;
  Pod pod = PodFrom({subject.name, "", "", std::make_shared<const Json>(*described)});
  pod.created = now;
  if (const char* maker = MakerOf(subject.kind)) pod.owner = {maker, subject.name.name, "made with it"};
  return pod;
}

// What it asks, without what siding has written.
std::map<std::string, std::string> AskedBy(const Pod& pod) {
  std::map<std::string, std::string> asked;
  for (const auto& [key, text] : pod.said) {
    if (!IsOwnMark(key)) asked.emplace(key, text);
  }
  return asked;
}

absl::Status IsToCome(Time moment, Time now, const std::string& field) {
  if (moment > now) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected a time to come, and ", FormatTime(moment), " is over"));
}

// Of a pod that a user has written, or a template.
absl::Status CheckPod(const Pod& pod, const AdmissionRules& rules, Time now,
                      std::vector<std::string>& warnings) {
  SIDING_ASSIGN_OR_RETURN(const std::optional<Ask> ask, AskOf(pod));
  if (!ask) return absl::OkStatus();
  if (rules.left_alone.contains(pod.name.space)) {
    warnings.push_back(absl::StrCat("siding leaves pods of the namespace ", pod.name.space, " alone"));
    return absl::OkStatus();
  }
  if (ask->start_by) {
    SIDING_RETURN_IF_ERROR(IsToCome(*ask->start_by, now, absl::StrCat(kPrefix, "start-by")));
    return CheckDeadline(pod);
  }
  const std::string not_saved = !rules.saves         ? "pods are only evicted in this cluster"
                                : !ask->gang.empty() ? "it belongs to a gang"
                                                     : WhyNotSaved(pod, rules.host_paths);
  if (not_saved.empty() || !ask->methods.Has(Method::kCheckpoint)) return absl::OkStatus();
  warnings.push_back(absl::StrCat(
      "siding cannot save this pod: ", not_saved,
      ask->methods.Has(Method::kKill) ? "; it would be evicted and begin again" : "; it does not make way"));
  return absl::OkStatus();
}

absl::Status CheckRequest(const Subject& subject, const AdmissionRules& rules, Time now,
                          std::vector<std::string>& warnings) {
  Request request = RequestFrom({subject.name, "", "", std::make_shared<const Json>(*subject.object)});
  request.created = now;
  SIDING_ASSIGN_OR_RETURN(const RequestSpec spec, SpecOf(request));
  if (rules.left_alone.contains(subject.name.space))
    warnings.push_back(absl::StrCat("siding leaves pods of the namespace ", subject.name.space, " alone"));
  return IsToCome(spec.start_by, now, "spec.startBy");
}

// An annotation beside the template is seen by nobody.
void WarnOfMisplaced(const Subject& subject, const Pod& pod, std::vector<std::string>& warnings) {
  if (subject.kind == "Pod") return;
  const Pod whole = PodFrom({subject.name, "", "", std::make_shared<const Json>(*subject.object)});
  for (const auto& [key, text] : AskedBy(whole)) {
    if (!pod.said.contains(key))
      warnings.push_back(absl::StrCat("siding does not look at metadata: ", kPrefix, key, " belongs into ",
                                      PlaceOfTemplate(subject.kind), "metadata"));
  }
}

absl::Status Check(const Subject& subject, const AdmissionRules& rules, Time now,
                   std::vector<std::string>& warnings) {
  if (subject.kind == "OnDemandRequest") {
    const Json* spec = Find(*subject.object, {"spec"});
    const Json* before = subject.before == nullptr ? nullptr : Find(*subject.before, {"spec"});
    const bool as_before = before != nullptr && spec != nullptr && *before == *spec;
    return as_before ? absl::OkStatus() : CheckRequest(subject, rules, now, warnings);
  }
  if (subject.kind != "Pod" && MakerOf(subject.kind) == nullptr) return absl::OkStatus();
  const std::optional<Pod> pod = PodIn(subject, subject.object, now);
  if (!pod) return absl::OkStatus();
  const std::optional<Pod> before = PodIn(subject, subject.before, now);
  if (before && AskedBy(*before) == AskedBy(*pod)) return absl::OkStatus();
  WarnOfMisplaced(subject, *pod, warnings);
  return Annotate(CheckPod(*pod, rules, now, warnings), PlaceOfTemplate(subject.kind) + "metadata");
}

}  // namespace

absl::StatusOr<Json> AnswerReview(const Json& review, const AdmissionRules& rules, Time now) {
  const std::string uid = TextAt(review, {"request", "uid"});
  Subject subject;
  subject.kind = TextAt(review, {"request", "kind", "kind"});
  if (uid.empty() || subject.kind.empty())
    return absl::InvalidArgumentError("expected an AdmissionReview with request.uid and request.kind");
  subject.name = {TextAt(review, {"request", "namespace"}), TextAt(review, {"request", "name"})};
  subject.object = Find(review, {"request", "object"});
  subject.before = Find(review, {"request", "oldObject"});
  if (subject.before != nullptr && !subject.before->is_object()) subject.before = nullptr;
  std::vector<std::string> warnings;
  absl::Status checked;
  // What is deleted is nothing to look at, and what a controller makes is of what was looked at then.
  const bool is_written =
      subject.object != nullptr && subject.object->is_object() && ControllerOf(*subject.object) == Owner();
  if (is_written) checked = Check(subject, rules, now, warnings);
  Json response = {{"uid", uid}, {"allowed", checked.ok()}};
  if (!checked.ok()) {
    response["status"] = {
        {"code", kBadRequest}, {"reason", "BadRequest"}, {"message", std::string(checked.message())}};
  }
  if (!warnings.empty()) response["warnings"] = warnings;
  return Json{
      {"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
}

}  // namespace siding::kubernetes
