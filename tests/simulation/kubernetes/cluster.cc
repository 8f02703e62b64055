#include "tests/simulation/kubernetes/cluster.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/platform/kubernetes/objects/needs.h"

namespace siding::simulation::pods {

using kubernetes::TextAt;

const kubernetes::Resource& Budgets() {
  static const kubernetes::Resource kBudgets{"policy", "v1", "poddisruptionbudgets", true};
  return kBudgets;
}

const kubernetes::Resource& Jobs() {
  static const kubernetes::Resource kJobs{"batch", "v1", "jobs", true};
  return kJobs;
}

const kubernetes::Resource& StatefulSets() {
  static const kubernetes::Resource kSets{"apps", "v1", "statefulsets", true};
  return kSets;
}

std::string UidOf(const Json& object) { return TextAt(object, {"metadata", "uid"}); }
std::string NodeOf(const Json& pod) { return TextAt(pod, {"spec", "nodeName"}); }
bool IsDeleting(const Json& pod) {
  return kubernetes::Find(pod, {"metadata", "deletionTimestamp"}) != nullptr;
}
bool Succeeded(const Json& pod) { return TextAt(pod, {"status", "phase"}) == "Succeeded"; }
bool IsOver(const Json& pod) { return Succeeded(pod) || TextAt(pod, {"status", "phase"}) == "Failed"; }

std::string Asked(const Json& pod, const std::string& what) {
  return TextAt(pod, {"metadata", "annotations", "siding.dev/" + what});
}

bool IsOfRuntimeClass(const Json& pod) { return TextAt(pod, {"spec", "runtimeClassName"}) == "siding"; }

int64_t CpuOf(const Json& pod) {
  const auto requests = kubernetes::RequestsOf(pod);
  return requests.ok() ? requests->cpu : 0;
}

HttpResponse Cluster::Ask(const HttpRequest& request) {
  HttpResponse response = server_.Handle(request, lab_.timeline.Now());
  Tell();
  return response;
}

void Cluster::Tell() {
  if (std::exchange(telling_, true)) return;  // what follows from a change is told after it
  while (told_ < server_.store().version()) {
    const auto part = server_.store().Since(told_);
    const std::vector<FakeStore::Event> events(part->begin(), part->end());
    for (const FakeStore::Event& event : events) {
      told_ = event.version;
      for (const auto& hear : on_change) hear(event);
    }
  }
  telling_ = false;
}

void Cluster::Compact() {
  lab_.trace("etcd", "is compacted");
  server_.Compact();
}

bool Cluster::Create(const kubernetes::Resource& resource, const std::string& space, const Json& object) {
  const auto path = PathOf(resource, space);
  return Ask({.method = HttpMethod::kPost, .path = *path, .body = kubernetes::WriteJson(object)}).code == 201;
}

bool Cluster::Patch(const kubernetes::Resource& resource, const ObjectName& name, const std::string& uid,
                    Json patch, const std::string& subresource) {
  if (!uid.empty()) patch["metadata"]["uid"] = uid;
  const auto path = PathOf(resource, name, subresource);
  const HttpRequest request{.method = HttpMethod::kPatch,
                            .path = *path,
                            .content_type = "application/merge-patch+json",
                            .body = kubernetes::WriteJson(patch)};
  return Ask(request).code == 200;
}

bool Cluster::Delete(const kubernetes::Resource& resource, const ObjectName& name, const std::string& uid,
                     std::optional<int> grace) {
  Json options = Json::object();
  if (!uid.empty()) options["preconditions"]["uid"] = uid;
  if (grace) options["gracePeriodSeconds"] = *grace;
  const auto path = PathOf(resource, name);
  return Ask({.method = HttpMethod::kDelete, .path = *path, .body = kubernetes::WriteJson(options)}).code ==
         200;
}

bool Cluster::Bind(const ObjectName& pod, const std::string& node) {
  const Json binding = {{"target", {{"name", node}}}};
  const auto path = PathOf(kubernetes::Pods(), pod, "binding");
  return Ask({.method = HttpMethod::kPost, .path = *path, .body = kubernetes::WriteJson(binding)}).code ==
         201;
}

}  // namespace siding::simulation::pods
