// HTTP as the page sees it, and the seam to what speaks it: a server for real (Listen()), or a test that
// calls the handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tls/certificates.h"
#include "common/units.h"
#include "page/server/byte_stream.h"

namespace siding::page {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

// The other end of a connection. All of it is what the server has found out itself: no header says it.
struct HttpPeer {
  std::string address;  // "10.0.0.5", "fd00::1"; one of IPv4 is written so however it came
  bool tls = false;
  // The URIs of the certificate that it has shown, which was found good; nothing: it has shown none.
  std::optional<std::vector<std::string>> certificate;
};

// Its headers have come, and its body where that is read.
struct HttpRequest {
  std::string method;
  std::string path;    // as it was written, with its escapes
  HttpFields query;    // as well, but + is a space already
  HttpFields headers;  // names as they were written
  std::string body;
  bool has_body = false;  // one that was not read: see HttpOptions::longest_body
  HttpPeer peer;

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

// In small letters, without a port.
using HostNames = std::set<std::string>;

struct HttpOptions {
  // "127.0.0.1:7480", "[::1]:7480", with `tls` any other one as well; port 0: any that is free.
  std::string address;
  // The files are read again when they change, as they are for gRPC (common/tls/credentials.h).
  std::optional<TlsFiles> tls;
  bool ask_for_certificates = true;  // of clients; who has none is let in as well
  // By which it is known, beside the loopback's names.
  HostNames names;
  int connections = 512;
  int connections_per_host = 256;
  // Of a POST that says how long it is, a body of up to so many bytes is read. Nothing is read of another
  // one, and its connection is closed.
  size_t longest_body = 0;
  // A connection that neither takes nor sends anything for that long is cut, unless it waits for a stream's
  // bytes.
  Duration patience = std::chrono::seconds(30);
  // And one that takes so long for an answer that is no stream, however much it takes at a time.
  Duration longest_answer = std::chrono::minutes(5);
  // And one that takes so long to ask: for its handshake and its request's headers, a byte at a time.
  Duration longest_question = std::chrono::minutes(1);
};

class HttpServer {
 public:
  // All connections are served by one thread; one that waits for a stream's bytes costs none. `handler` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options, HttpHandler handler);
  // Ends all streams, and cuts all connections.
  virtual ~HttpServer() = default;
  // Cuts those that are over `longest_answer` or `longest_question`, as far as it was called when theirs
  // began: to be called again and again.
  virtual void CutSlow(Time now) = 0;
  virtual int port() const = 0;
};

// What is wrong with an address to listen at; "" if all is well. Nothing goes over a network without TLS.
std::string ProblemOfAddress(const std::string& address, bool tls);
// Of an address that is well: nobody reaches it but this machine.
bool IsLoopback(const std::string& address);
// What a browser of this machine is to be given for it; "" where there is none, or any port will do, which is
// known only when it is open.
std::string AddressForBrowsers(const std::string& address);

}  // namespace siding::page
