// HTTP as the page sees it, and the seam to what speaks it: a server for real (Listen()), or a test that
// calls the handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/units.h"
#include "page/server/byte_stream.h"

namespace siding::page {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// Its headers have come. A body is not read: nothing takes one.
struct HttpRequest {
  std::string method;
  std::string path;    // as it was written, with its escapes
  HttpFields query;    // as well, but + is a space already
  HttpFields headers;  // names as they were written
  bool has_body = false;

  // Nothing, if it is there twice or not at all.
  std::optional<std::string> Header(const std::string& name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  // One of these. A body may be shared with other responses.
  std::shared_ptr<const std::string> body;
  std::shared_ptr<ByteStream> stream;
  HttpFields headers;
};

// Runs on the server's only thread: others wait meanwhile.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpOptions {
  std::string address;  // "127.0.0.1:7480", "[::1]:7480"; port 0: any that is free
  int connections = 512;
  int connections_per_host = 256;
  // A connection that neither takes nor sends anything for that long is cut, unless it waits for a stream's
  // bytes.
  Duration patience = std::chrono::seconds(30);
  // And one that takes so long for an answer that is no stream, however much it takes at a time.
  Duration longest_answer = std::chrono::minutes(5);
};

class HttpServer {
 public:
  // All connections are served by one thread; one that waits for a stream's bytes costs none. `handler` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options, HttpHandler handler);
  // Ends all streams, and cuts all connections.
  virtual ~HttpServer() = default;
  // Cuts those that are over `longest_answer`, as far as it was called when theirs began: to be called again
  // and again.
  virtual void CutSlow(Time now) = 0;
  virtual int port() const = 0;
};

// What is wrong with an address to listen at; "" if all is well. Loopback alone: nothing goes over a network
// without TLS.
std::string ProblemOfAddress(const std::string& address);
// What a browser of this machine is to be given for it; "" where there is none, or any port will do, which is
// known only when it is open.
std::string AddressForBrowsers(const std::string& address);

}  // namespace siding::page
