// What the API server says against a request, as an absl::Status that keeps the reason.
//
//   kNotFound            404
//   kAlreadyExists       409, reason AlreadyExists
//   kAborted             409 otherwise: it changed, or is another object of that name
//   kOutOfRange          410: the resource version or the token of a list has expired; list again
//   kInvalidArgument     400, 422: the causes name the fields
//   kPermissionDenied    403
//   kUnauthenticated     401
//   kFailedPrecondition  429 because of a disruption budget: not now, whatever is tried
//   kResourceExhausted   429 otherwise: the server is busy, and has not done it
//   kUnimplemented       405, 406, 415
//   kDeadlineExceeded    408, 504; it may be done
//   kUnavailable         other 5xx; it may be done
//   kUnknown             anything else
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/json.h"
#include "controller/platform/kubernetes/client/transport.h"

namespace siding::kubernetes {

struct ErrorCause {
  std::string reason;
  std::string field;  // "spec.containers[0].image"; may be empty
  std::string message;
  bool operator==(const ErrorCause&) const = default;
};

// A Status object of the API, or what stands for one where the server sent none. Texts are printable and
// short, whatever the server sent.
struct ApiError {
  int code = 0;  // as of HTTP
  std::string reason;
  std::string message;
  std::vector<ErrorCause> causes;
  std::optional<Duration> retry_after;
  bool operator==(const ApiError&) const = default;

  bool IsBudget() const;  // a PodDisruptionBudget is in the way
};

// `code` is taken if the object has none of its own.
ApiError ErrorFrom(const Json& status, int code);
// Of an answer that is no success.
ApiError ErrorFrom(const HttpResponse& response);

// `what` was asked: "evict pods default/a". It is in the message, beside code, reason and causes.
absl::Status ToStatus(const ApiError& error, absl::string_view what);
// What the server said; nothing if this status is not from ToStatus().
std::optional<ApiError> ErrorOf(const absl::Status& status);
// Whether a change that failed like this may be done nevertheless, now or in a moment.
bool MayBeDone(const absl::Status& failed);
// The server's words, with its causes and without the call and the status; of any other status its message.
std::string WordsOf(const absl::Status& refusal);

}  // namespace siding::kubernetes
