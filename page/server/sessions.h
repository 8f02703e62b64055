// Whose a request is. A session is an identity: all that one reader asks, by whichever connection.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "page/server/http.h"
#include "page/server/orders.h"
#include "page/server/source.h"

namespace siding::page {

struct Session {
  // The same for all requests of one reader who may do the same, and no other one's.
  std::string of;
  // Asked in his name: what it tells is what he may see. It may be asked when the request is answered.
  std::shared_ptr<Source> source;
  // Given in his name; nullptr: he may give none.
  std::shared_ptr<Orders> orders;
  std::string order_token;  // what an order of his has to have with it; nobody else's, and not to be guessed
  // Of events, open at a time.
  size_t most_streams = std::numeric_limits<size_t>::max();
};

class Sessions {
 public:
  virtual ~Sessions() = default;
  // Nothing: a stranger's, who says nothing of himself. kUnauthenticated, kPermissionDenied: he is not who he
  // says, or nobody here; he is told so, and nothing else. Asked of each request, on the server's thread: who
  // is nobody any more reads nothing more.
  virtual absl::StatusOr<std::optional<Session>> Of(const HttpRequest& request) = 0;
};

}  // namespace siding::page
