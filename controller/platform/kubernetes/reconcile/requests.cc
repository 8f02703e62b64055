#include "controller/platform/kubernetes/reconcile/requests.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fault.h"
#include "common/status.h"

namespace siding::kubernetes {
namespace {

constexpr Duration kMakeAgain = std::chrono::seconds(5);
// Others' pods must not wait until those of a large request are made.
constexpr int kMostAtOnce = 50;

bool AnyPod(const Request& request, const RequestNow& there) {
  return std::any_of(there.pods.begin(), there.pods.end(),
                     [&](const auto& pod) { return pod && IsPodOf(request, *pod); }) ||
         !RecordOf(request).pods.empty();
}

}  // namespace

Requests::Requests(Transport& transport, Pacer& pacer, const Clock& clock, std::set<std::string> left_alone,
                   Sources sources)
    : clock_(clock),
      left_alone_(std::move(left_alone)),
      sources_(std::move(sources)),
      kind_(transport, pacer, clock, OnDemandRequests(), {"requests", "served"},
            {sources_.wake, sources_.log}) {}

void Requests::Round(ApiClient& client) {
  const std::optional<Objects> objects = sources_.look ? sources_.look() : kind_.Look(client);
  if (!objects) return;
  std::set<std::string> uids;
  pauses_.Forget(clock_.Now());
  left_ = kMostAtOnce;
  for (const auto& [name, object] : *objects) {
    uids.insert(object.uid);
    Serve(client, RequestFrom(object));
  }
  std::erase_if(problems_, [&](const auto& problem) { return !uids.contains(problem.first); });
  if (left_ <= 0) sources_.wake();
}

void Requests::Serve(ApiClient& client, Request request) {
  if (request.deleting || RecordOf(request).over || !Accept(client, request)) return;
  RequestNow there = LookAt(request);
  const absl::Status made = MakePods(client, request, there);
  const Time now = clock_.Now();
  if (absl::IsInvalidArgument(made) && !AnyPod(request, there)) {
    // The server would say the same of each of its pods.
    const std::string why = absl::StrCat("spec.template: expected what the server takes: ", made.message());
    Write(client, request, StatusIfTurnedDown(request, "Invalid", why, now));
    return;
  }
  there.problem = std::string(made.message());
  FaultHere<"kubernetes.request.made: the pods of a request are made, its status does not say so yet">();
  Write(client, request, StatusOf(request, there, now));
}

bool Requests::Accept(ApiClient& client, Request& request) {
  const RequestRecord record = RecordOf(request);
  if (record.accepted) return true;
  const Time now = clock_.Now();
  if (left_alone_.contains(request.name.space)) {
    Write(client, request,
          StatusIfTurnedDown(request, "LeftAlone",
                             absl::StrCat("metadata.namespace: expected another one: siding leaves pods of ",
                                          request.name.space, " alone"),
                             now));
    return false;
  }
  const absl::StatusOr<RequestSpec> spec = SpecOf(request);
  if (!spec.ok()) {
    Write(client, request, StatusIfTurnedDown(request, "Invalid", std::string(spec.status().message()), now));
    return false;
  }
  if (record.invalid) return false;  // by the server's word: it would say the same again
  std::optional<Request> accepted = Write(client, request, StatusIfAccepted(request, *spec, now));
  if (!accepted) return false;
  FaultHere<"kubernetes.request.accepted: a request is accepted, none of its pods are made">();
  request = *std::move(accepted);
  return true;
}

RequestNow Requests::LookAt(const Request& request) const {
  RequestNow there;
  std::optional<JobId> job;
  const int count = RecordOf(request).count;
  for (int index = 0; index < count; ++index) {
    there.pods.push_back(sources_.pod({request.name.space, PodNameOf(request, index)}));
    const auto& pod = there.pods.back();
    if (pod && pod->number && IsPodOf(request, *pod)) job = pod->number;
  }
  if (job) there.outlook = sources_.outlook(*job);
  return there;
}

absl::Status Requests::MakePods(ApiClient& client, const Request& request, const RequestNow& there) {
  const RequestRecord record = RecordOf(request);
  // What was accepted cannot be read any more.
  if (request.generation != record.generation) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const RequestSpec spec, SpecOf(request));
  const Time now = clock_.Now();
  const auto problem = problems_.find(request.uid);
  if (problem != problems_.end() && now < problem->second.again_at) return problem->second.why;
  for (int index = 0; index < record.count; ++index) {
    const ObjectName name{request.name.space, PodNameOf(request, index)};
    const std::optional<PodStanding>& pod = there.pods[index];
    if (pod && IsPodOf(request, *pod)) continue;
    if (record.pods.contains(name.name)) return absl::OkStatus();  // it ended so, and needs no other pods
    if (pod)
      return absl::AlreadyExistsError(
          absl::StrCat("pod ", ToString(name), " is there, and is not this request's: expected a free name"));
    if (left_-- <= 0) return absl::OkStatus();
    const absl::Status made = client.Create(Pods(), name.space, PodOf(request, spec, index)).status();
    if (absl::IsAlreadyExists(made)) continue;  // the watch has not told yet
    sources_.log("request " + ToString(request.name), "pod " + name.name + " made", made);
    if (!made.ok()) {
      problems_[request.uid] = {now + kMakeAgain, made};
      return made;
    }
  }
  problems_.erase(request.uid);
  return absl::OkStatus();
}

std::optional<Request> Requests::Write(ApiClient& client, const Request& request, const Json& status) {
  const std::optional<Json> patch = PatchTowards(request, status);
  if (!patch) return request;
  const Time now = clock_.Now();
  if (!pauses_.Allow(request.uid, now)) return std::nullopt;
  const absl::StatusOr<Object> written =
      client.MergePatch(OnDemandRequests(), request.name, *patch, "status");
  pauses_.Note(request.uid, written.status(), now);
  sources_.log("status of request " + ToString(request.name), TextAt(status, {"state"}), written.status());
  if (!written.ok()) return std::nullopt;
  return RequestFrom(*written);
}

}  // namespace siding::kubernetes
