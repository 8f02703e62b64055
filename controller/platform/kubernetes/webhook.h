// The address that the API server asks before it stores an object: HTTPS with one function behind it, which
// remembers nothing, so that each controller serves it, whether it acts or stands by.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace siding::kubernetes {

struct WebhookOptions {
  std::string address;      // an IP address
  int port = 0;             // 0: one that is free
  std::string certificate;  // PEM files, read again for each connection: they may be renewed
  std::string key;
};

class Webhook {
 public:
  // The body of the answer to this body; an error is told to who has asked. Called by several threads at a
  // time.
  using Answerer = std::function<absl::StatusOr<std::string>(const std::string& body)>;
  // Serves until it is destroyed, which waits for answers that are under way. An error names the file or the
  // address.
  static absl::StatusOr<std::unique_ptr<Webhook>> Start(const WebhookOptions& options, Answerer answer);
  virtual ~Webhook() = default;
  virtual int port() const = 0;
};

}  // namespace siding::kubernetes
