#include "controller/platform/kubernetes/client/rights.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::kubernetes {
namespace {

constexpr char kPath[] = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

struct Right {
  const char* verb;
  const char* resource;
  const char* subresource;
  bool own;  // only where its own objects are
};
constexpr Right kRights[] = {
    {"list", "pods", "", false},          {"watch", "pods", "", false},
    {"patch", "pods", "", false},         {"get", "pods", "", false},
    {"create", "pods", "binding", false}, {"create", "pods", "eviction", false},
    {"list", "nodes", "", false},         {"watch", "nodes", "", false},
    {"patch", "nodes", "", false},        {"create", "events", "", false},
    {"get", "configmaps", "", true},      {"create", "configmaps", "", true},
    {"patch", "configmaps", "", true},    {"get", "secrets", "", true},
    {"create", "secrets", "", true},
};

}  // namespace

absl::StatusOr<std::vector<std::string>> MissingRights(ApiClient& client, const std::string& space) {
  std::vector<std::string> missing;
  for (const Right& right : kRights) {
    Json asked = {{"verb", right.verb}, {"resource", right.resource}};
    if (*right.subresource != '\0') asked["subresource"] = right.subresource;
    if (right.own) asked["namespace"] = space;
    const Json review = {{"apiVersion", "authorization.k8s.io/v1"},
                         {"kind", "SelfSubjectAccessReview"},
                         {"spec", {{"resourceAttributes", std::move(asked)}}}};
    SIDING_ASSIGN_OR_RETURN(const Json answer, client.PostJson(kPath, review, "what siding may do"));
    const Json* allowed = Find(answer, {"status", "allowed"});
    if (allowed != nullptr && allowed->is_boolean() && allowed->get<bool>()) continue;
    missing.push_back(absl::StrCat("may not ", right.verb, " ", right.resource,
                                   *right.subresource == '\0' ? "" : "/", right.subresource,
                                   right.own ? " in the namespace " + space : ""));
  }
  return missing;
}

}  // namespace siding::kubernetes
