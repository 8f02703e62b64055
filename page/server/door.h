// Who may come in to a page that tells what one user may see: whoever has the address that it was given.
// Others of the same machine reach the loopback as well.
#pragma once

#include <optional>
#include <string>

#include "common/mutex.h"
#include "page/server/http.h"
#include "page/server/secret.h"

namespace siding::page {

// The token of the address opens it once, and is exchanged for a cookie, which opens it as long as this
// lives. Every path is behind it: there is no list of what is harmless that could be wrong. Thread-safe.
class Door {
 public:
  Door() : Door(DrawSecret(), DrawSecret()) {}
  Door(std::string token, std::string session) : token_(std::move(token)), session_(std::move(session)) {}

  // The path and fields of the address that opens it.
  std::string Key() const;
  // What a request of its session that changes something has to have with it.
  std::string OrderToken() const { return DeriveSecret(session_, "orders"); }
  // What is answered in place of the page's answer; nothing: come in.
  std::optional<HttpResponse> Stop(const HttpRequest& request);

 private:
  HttpResponse Exchange(const HttpRequest& request, const std::string& token);

  const std::string token_;
  const std::string session_;
  Mutex mutex_;
  bool used_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding::page
