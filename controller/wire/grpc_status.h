// Errors at the edge: absl's codes are gRPC's. But UNAVAILABLE is left to gRPC itself, which says it when
// there is no connection: a caller who gets it knows that no controller answered. One that answers, but
// cannot at the moment, says ABORTED.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace siding {

inline grpc::Status ToGrpc(const absl::Status& status) {
  const auto code = absl::IsUnavailable(status) ? absl::StatusCode::kAborted : status.code();
  return grpc::Status(static_cast<grpc::StatusCode>(code), std::string(status.message()));
}

}  // namespace siding
