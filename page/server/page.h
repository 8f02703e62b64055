// The operators' page's server: answers HTTP with the API's messages as JSON. It changes nothing, and whoever
// asks is a stranger: he sees what the policy lets every user see.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "controller/api/service.h"
#include "page/server/event_feed.h"
#include "page/server/http.h"
#include "page/server/question.h"
#include "page/server/snapshots.h"
#include "page/server/static_files.h"

namespace siding::page {

// No user's: nobody has this number, and no account such a name.
UserIdentity Stranger();

// The skin over the service. Thread-safe, but for Turn().
class Page {
 public:
  // `api` and `clock` must outlive it. `files`: what is there beside the API's addresses, the built page.
  Page(ApiService& api, const Clock& clock, const std::vector<File>& files = Files());

  HttpResponse Answer(const HttpRequest& request);
  // See EventFeed.
  void Turn(Duration wait) { feed_.Turn(wait); }
  void End() { feed_.End(); }

 private:
  // What is open for all that ask the same within that time.
  static constexpr Duration kMoment = std::chrono::milliseconds(500);
  // A whole site's jobs are some ten of these; each that is read slowly may be another answer.
  static constexpr size_t kMostUnread = 128 << 20;

  absl::StatusOr<std::string> Tell(const Question& question);
  template <class Request, class Response>
  absl::StatusOr<std::string> Call(absl::Status (ApiService::*call)(const ApiCall&, const Request*,
                                                                    Response*),
                                   const Request& request);
  HttpResponse AnswerWhole(const HttpRequest& request, const Question& question);
  static HttpResponse Send(const HttpRequest& request, const Snapshot& snapshot,
                           const std::string& content_type);
  HttpResponse Follow(const FollowEvents& events);

  ApiService& api_;
  const StaticFiles files_;
  Snapshots snapshots_;
  EventFeed feed_;
};

// A page that is served until this is destroyed.
class PageServer {
 public:
  // `api` and `clock` must outlive it.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const HttpOptions& options, ApiService& api,
                                                           const Clock& clock);
  ~PageServer();
  int port() const { return server_->port(); }

 private:
  PageServer(ApiService& api, const Clock& clock) : clock_(clock), page_(api, clock) {}
  void Run();

  const Clock& clock_;
  Page page_;
  std::unique_ptr<HttpServer> server_;
  std::atomic<bool> stopping_{false};
  std::thread feeding_;
};

}  // namespace siding::page
