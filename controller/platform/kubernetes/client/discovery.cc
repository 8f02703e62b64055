#include "controller/platform/kubernetes/client/discovery.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::kubernetes {

bool Discovery::Has(const std::string& group, absl::string_view version) const {
  const auto found = groups.find(group);
  return found != groups.end() &&
         std::find(found->second.begin(), found->second.end(), version) != found->second.end();
}

absl::StatusOr<Discovery> Discover(ApiClient& client) {
  Discovery discovery;
  SIDING_ASSIGN_OR_RETURN(const Json version, client.GetJson("/version", "the server's version"));
  discovery.server = TextAt(version, {"gitVersion"});
  SIDING_ASSIGN_OR_RETURN(const Json groups, client.GetJson("/apis", "API groups"));
  for (const Json& group : ListAt(groups, {"groups"})) {
    std::vector<std::string>& versions = discovery.groups[TextAt(group, {"name"})];
    for (const Json& one : ListAt(group, {"versions"})) versions.push_back(TextAt(one, {"version"}));
  }
  // The version of the group policy says nothing: some servers have policy/v1, and evict by v1beta1.
  SIDING_ASSIGN_OR_RETURN(const Json core, client.GetJson("/api/v1", "resources of the core"));
  for (const Json& resource : ListAt(core, {"resources"})) {
    if (TextAt(resource, {"name"}) == "pods/eviction" && TextAt(resource, {"group"}) == "policy") {
      discovery.eviction = TextAt(resource, {"version"});
    }
  }
  return discovery;
}

absl::StatusOr<bool> HasResource(ApiClient& client, const Resource& resource) {
  const absl::StatusOr<Json> group =
      client.GetJson(absl::StrCat("/apis/", resource.group, "/", resource.version),
                     absl::StrCat("resources of ", resource.group));
  if (absl::IsNotFound(group.status())) return false;
  if (!group.ok()) return group.status();
  const Json& there = ListAt(*group, {"resources"});
  return std::any_of(there.begin(), there.end(),
                     [&](const Json& one) { return TextAt(one, {"name"}) == resource.plural; });
}

}  // namespace siding::kubernetes
