#include "controller/platform/kubernetes/client/errors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace siding::kubernetes {
namespace {

constexpr absl::string_view kPayload = "siding.dev/kubernetes.Status";
constexpr size_t kLongestText = 500;
constexpr size_t kMostCauses = 10;
constexpr int64_t kLongestRetrySeconds = 3600;

// For messages and logs: on one line, and of bounded length.
std::string Clean(std::string text) {
  if (text.size() > kLongestText) text.resize(kLongestText);
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = ' ';
  }
  return text;
}

std::optional<Duration> Seconds(int64_t seconds) {
  if (seconds <= 0) return std::nullopt;
  return std::chrono::seconds(std::min(seconds, kLongestRetrySeconds));
}

absl::StatusCode CodeOf(const ApiError& error) {
  switch (error.code) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 406:
    case 415:
      return absl::StatusCode::kUnimplemented;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 409:
      return error.reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 429:
      return error.IsBudget() ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kResourceExhausted;
    default:
      return error.code >= 500 && error.code < 600 ? absl::StatusCode::kUnavailable
                                                   : absl::StatusCode::kUnknown;
  }
}

}  // namespace

bool ApiError::IsBudget() const {
  return std::any_of(causes.begin(), causes.end(),
                     [](const ErrorCause& cause) { return cause.reason == "DisruptionBudget"; });
}

ApiError ErrorFrom(const Json& status, int code) {
  ApiError error;
  const int64_t own = WholeAt(status, {"code"});
  error.code = own >= 100 && own < 1000 ? static_cast<int>(own) : code;
  error.reason = Clean(TextAt(status, {"reason"}));
  error.message = Clean(TextAt(status, {"message"}));
  error.retry_after = Seconds(WholeAt(status, {"details", "retryAfterSeconds"}));
  for (const Json& cause : ListAt(status, {"details", "causes"})) {
    if (error.causes.size() == kMostCauses) break;
    error.causes.push_back({Clean(TextAt(cause, {"reason"})), Clean(TextAt(cause, {"field"})),
                            Clean(TextAt(cause, {"message"}))});
  }
  return error;
}

ApiError ErrorFrom(const HttpResponse& response) {
  const absl::StatusOr<Json> body = ParseJson(response.body);
  ApiError error;
  if (body.ok() && TextAt(*body, {"kind"}) == "Status") {
    error = ErrorFrom(*body, response.code);
  } else {
    // A proxy, or a server that is coming up, answers with a page of its own. Nothing of it is repeated.
    error.message = "the answer is no Status object";
  }
  error.code = response.code;
  const auto header = response.headers.find("retry-after");
  int64_t seconds = 0;
  if (!error.retry_after && header != response.headers.end() && absl::SimpleAtoi(header->second, &seconds)) {
    error.retry_after = Seconds(seconds);
  }
  return error;
}

absl::Status ToStatus(const ApiError& error, absl::string_view what) {
  std::string message = absl::StrCat(what, ": ", error.code);
  if (!error.reason.empty()) absl::StrAppend(&message, " ", error.reason);
  if (!error.message.empty()) absl::StrAppend(&message, ": ", error.message);
  Json causes = Json::array();
  for (const ErrorCause& cause : error.causes) {
    // The server's message has them too, as a rule; then they are not said twice.
    if (!cause.field.empty() && error.message.find(cause.field) == std::string::npos) {
      absl::StrAppend(&message, "; ", cause.field, ": ", cause.message);
    }
    causes.push_back({{"reason", cause.reason}, {"field", cause.field}, {"message", cause.message}});
  }
  Json kept = {{"code", error.code}, {"reason", error.reason}, {"message", error.message}};
  kept["details"]["causes"] = std::move(causes);
  if (error.retry_after) {
    kept["details"]["retryAfterSeconds"] =
        std::chrono::duration_cast<std::chrono::seconds>(*error.retry_after).count();
  }
  absl::Status status(CodeOf(error), message);
  status.SetPayload(kPayload, absl::Cord(WriteJson(kept)));
  return status;
}

std::optional<ApiError> ErrorOf(const absl::Status& status) {
  const auto kept = status.GetPayload(kPayload);
  if (!kept) return std::nullopt;
  const absl::StatusOr<Json> json = ParseJson(std::string(*kept));
  if (!json.ok()) return std::nullopt;
  return ErrorFrom(*json, 0);
}

bool MayBeDone(const absl::Status& failed) {
  if (failed.ok()) return false;
  return !ErrorOf(failed) || absl::IsUnavailable(failed) || absl::IsDeadlineExceeded(failed) ||
         absl::IsUnknown(failed);
}

std::string WordsOf(const absl::Status& refusal) {
  const std::optional<ApiError> error = ErrorOf(refusal);
  if (!error) return std::string(refusal.message());
  std::string words = error->message;
  for (const ErrorCause& cause : error->causes) absl::StrAppend(&words, " ", cause.message);
  return words;
}

}  // namespace siding::kubernetes
