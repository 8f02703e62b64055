// What siding may do at the API server, asked of it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/platform/kubernetes/client/api_client.h"

namespace siding::kubernetes {

// What it needs and may not do, a line each: "may not create pods/eviction"; `space`: where its own objects
// are.
absl::StatusOr<std::vector<std::string>> MissingRights(ApiClient& client, const std::string& space);

}  // namespace siding::kubernetes
