// The operators' page's server: answers HTTP with the API's messages as JSON. What is seen is what its source
// may tell; nothing is changed but by its order desk, where it has one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "page/server/door.h"
#include "page/server/event_feed.h"
#include "page/server/http.h"
#include "page/server/order_desk.h"
#include "page/server/question.h"
#include "page/server/snapshots.h"
#include "page/server/source.h"
#include "page/server/static_files.h"

namespace siding::page {

// Who may read the answers. kOne: no browser keeps them, where whoever listens on this port later could read
// them.
enum class Readers { kAll, kOne };

// The skin over a source. Thread-safe as far as the source is, but for Turn().
class Page {
 public:
  // `source`, `clock` and `desk` must outlive it. `files`: what is there beside the API's addresses, the
  // built page. `desk`: nullptr: it is read only.
  Page(Source& source, const Clock& clock, const std::vector<File>& files = Files(),
       Readers readers = Readers::kAll, OrderDesk* desk = nullptr);

  HttpResponse Answer(const HttpRequest& request);
  // See EventFeed.
  absl::Status Turn(Duration wait) { return feed_.Turn(wait); }
  void End() { feed_.End(); }

 private:
  // What is open for all that ask the same within that time.
  static constexpr Duration kMoment = std::chrono::milliseconds(500);
  // A whole site's jobs are some ten of these; each that is read slowly may be another answer.
  static constexpr size_t kMostUnread = 128 << 20;

  absl::StatusOr<std::string> Tell(const Question& question);
  template <class Request, class Response>
  absl::StatusOr<std::string> Call(absl::Status (Source::*call)(const Request&, Response&),
                                   const Request& request);
  // Nothing: it is a question.
  std::optional<HttpResponse> AnswerErrand(const HttpRequest& request);
  HttpResponse AnswerWhole(const HttpRequest& request, const Question& question);
  static HttpResponse Send(const HttpRequest& request, const Snapshot& snapshot,
                           const std::string& content_type, const std::string& cache_control);
  HttpResponse Follow(const FollowEvents& events);

  Source& source_;
  const Clock& clock_;
  const StaticFiles files_;
  const Readers readers_;
  OrderDesk* const desk_;
  Snapshots snapshots_;
  EventFeed feed_;
};

// A page that is served until this is destroyed.
class PageServer {
 public:
  // All that is given must outlive it. `door`: who may come in; nullptr: everybody. `desk`: where its
  // reader gives orders, which needs a door; nullptr: nowhere.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const HttpOptions& options, Source& source,
                                                           const Clock& clock, Door* door = nullptr,
                                                           OrderDesk* desk = nullptr);
  ~PageServer();
  int port() const { return server_->port(); }

 private:
  // How events are asked for: for so long for the first of them, and again after a pause, since one event at
  // a time would wake every reader a hundred times a second.
  static constexpr Duration kEventWait = std::chrono::milliseconds(200);
  static constexpr Duration kEventPause = std::chrono::milliseconds(50);
  // While whoever is asked does not answer.
  static constexpr Duration kAwayPause = std::chrono::seconds(1);

  PageServer(Source& source, const Clock& clock, Readers readers, OrderDesk* desk)
      : clock_(clock), page_(source, clock, Files(), readers, desk) {}
  void Run();

  const Clock& clock_;
  Page page_;
  std::unique_ptr<HttpServer> server_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread feeding_;
};

}  // namespace siding::page
