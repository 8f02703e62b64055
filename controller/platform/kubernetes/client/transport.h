// HTTP as far as the Kubernetes API needs it: an answer to a request, or the lines of one that goes on.
//
// Thread-safe: each call has a connection of its own while it lasts, so a watch is in nobody's way. Calls
// block; a stop request from another thread ends one at once. Errors say what was asked, never a header or a
// body, so that no secret is in them:
//   kUnavailable         the server cannot be reached, or the connection broke: what was asked may be done
//   kDeadlineExceeded    no whole answer in time: what was asked may be done
//   kCancelled           a stop was requested
//   kResourceExhausted   the answer, or a line of it, is longer than allowed
//   kFailedPrecondition  no connection to this server can be trusted, or the credentials cannot be read
//   kInvalidArgument     this cannot be asked
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/units.h"

namespace siding::kubernetes {

enum class HttpMethod : uint8_t { kGet, kPost, kPut, kPatch, kDelete };
// "GET"
absl::string_view ToString(HttpMethod method);

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string path;                                        // "/api/v1/pods"; what is odd in it is encoded
  std::vector<std::pair<std::string, std::string>> query;  // not encoded
  std::string content_type;                                // of the body
  std::string body;
  Duration limit = std::chrono::seconds(30);  // until the answer is there, or the stream ends
  // Of a stream: it has broken when nothing comes for so long.
  Duration silence = std::chrono::seconds(90);
};

struct HttpResponse {
  int code = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of a stream that was begun: empty
};

// Gets one line, without its end. False: no more are wanted.
using LineReader = std::function<bool(absl::string_view line)>;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) = 0;
  // With code 200 the lines are read on the caller's thread as they come, and the call returns when the
  // stream has ended or the reader wants no more. With another code no line is read and the body is in the
  // answer.
  virtual absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                              std::stop_token stop) = 0;
};

// "/api/v1/pods?limit=5", encoded as it is sent.
std::string TargetOf(const HttpRequest& request);
// What may stand in a path or a query as it is; everything else becomes %XX.
std::string Encode(absl::string_view text);

}  // namespace siding::kubernetes
