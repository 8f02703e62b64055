#include "controller/platform/kubernetes/client/rights.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/client/discovery.h"

namespace siding::kubernetes {
namespace {

constexpr char kPath[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

struct Right {
  const char* verb;
  const char* resource;
  const char* subresource;
  bool own;                // only where its own objects are
  const char* group = "";  // the core's
};
constexpr Right kRights[] = {
    {"list", "pods", "", false},
    {"watch", "pods", "", false},
    {"patch", "pods", "", false},
    {"get", "pods", "", false},
    {"delete", "pods", "", false},
    {"create", "pods", "binding", false},
    {"create", "pods", "eviction", false},
    {"list", "nodes", "", false},
    {"watch", "nodes", "", false},
    {"patch", "nodes", "", false},
    {"get", "nodes", "", false},
    {"create", "events", "", false},
    {"get", "configmaps", "", true},
    {"create", "configmaps", "", true},
    {"patch", "configmaps", "", true},
    {"get", "secrets", "", true},
    {"create", "secrets", "", true},
    {"list", "poddisruptionbudgets", "", false, "policy"},
    {"watch", "poddisruptionbudgets", "", false, "policy"},
    // Who makes the next pod of a job that was saved.
    {"get", "jobs", "", false, "batch"},
    {"get", "replicasets", "", false, "apps"},
    {"get", "statefulsets", "", false, "apps"},
    {"get", "replicationcontrollers", "", false},
};
// Where the server has requests.
constexpr Right kForRequests[] = {
    {"list", "ondemandrequests", "", false, "siding.dev"},
    {"watch", "ondemandrequests", "", false, "siding.dev"},
    {"patch", "ondemandrequests", "status", false, "siding.dev"},
    {"update", "ondemandrequests", "finalizers", false, "siding.dev"},
    {"create", "pods", "", false},
};
// Where it has checkpoints.
constexpr Right kForCheckpoints[] = {
    {"list", "checkpoints", "", false, "siding.dev"},
    {"watch", "checkpoints", "", false, "siding.dev"},
    {"create", "checkpoints", "", false, "siding.dev"},
    {"delete", "checkpoints", "", false, "siding.dev"},
    {"patch", "checkpoints", "status", false, "siding.dev"},
};

absl::Status Review(ApiClient& client, const std::string& space, const Right& right,
                    std::vector<std::string>& missing) {
  Json asked = {{"verb", right.verb}, {"resource", right.resource}};
  if (*right.group != '\0') asked["group"] = right.group;
  if (*right.subresource != '\0') asked["subresource"] = right.subresource;
  if (right.own) asked["namespace"] = space;
  const Json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec", {{"resourceAttributes", std::move(asked)}}}};
  SIDING_ASSIGN_OR_RETURN(const Json answer, client.PostJson(kPath, review, "what siding may do"));
  if (IsTrueAt(answer, {"status", "allowed"})) return absl::OkStatus();
  missing.push_back(absl::StrCat("may not ", right.verb, " ", right.resource,
                                 *right.subresource == '\0' ? "" : "/", right.subresource,
                                 right.own ? " in the namespace " + space : ""));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> MissingRights(ApiClient& client, const std::string& space) {
  std::vector<std::string> missing;
  for (const Right& right : kRights) SIDING_RETURN_IF_ERROR(Review(client, space, right, missing));
  SIDING_ASSIGN_OR_RETURN(const bool has_requests, HasResource(client, OnDemandRequests()));
  if (has_requests) {
    for (const Right& right : kForRequests) SIDING_RETURN_IF_ERROR(Review(client, space, right, missing));
  }
  SIDING_ASSIGN_OR_RETURN(const bool has_checkpoints, HasResource(client, Checkpoints()));
  if (has_checkpoints) {
    for (const Right& right : kForCheckpoints) SIDING_RETURN_IF_ERROR(Review(client, space, right, missing));
  }
  return missing;
}

}  // namespace siding::kubernetes
