// Connections to the controller's socket as any of this machine's users.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace siding {

// A connection of its own. As another user than one's own: for root only.
absl::StatusOr<std::shared_ptr<grpc::Channel>> DialAs(uint32_t uid, const std::string& socket);

}  // namespace siding
