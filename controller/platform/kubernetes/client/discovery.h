// What this API server has: its groups, and which eviction it understands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "controller/platform/kubernetes/client/api_client.h"

namespace siding::kubernetes {

// A field that the server does not know is not found here: it is missing from what Create() returns.
struct Discovery {
  std::string server;                                      // "v1.20.2"
  std::map<std::string, std::vector<std::string>> groups;  // versions of each; the core is not among them
  std::string eviction;                                    // of group policy: "v1", "v1beta1"; "": none
  bool Has(const std::string& group, absl::string_view version) const;
};

absl::StatusOr<Discovery> Discover(ApiClient& client);
// Of a group, not of the core: whether the server has it, in this version.
absl::StatusOr<bool> HasResource(ApiClient& client, const Resource& resource);

}  // namespace siding::kubernetes
