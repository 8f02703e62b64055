// The operators' page's server: answers HTTP with the API's messages as JSON. What is seen is what its source
// may tell; nothing is changed but by orders, of readers that may give some.
#pragma once

#include <atomic>
#include <limits>
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
#include "page/server/list_memory.h"
#include "page/server/lists.h"
#include "page/server/order_desk.h"
#include "page/server/orders.h"
#include "page/server/planning_time.h"
#include "page/server/question.h"
#include "page/server/sessions.h"
#include "page/server/snapshots.h"
#include "page/server/source.h"
#include "page/server/static_files.h"

namespace siding::page {

// Who may read the answers. kOne: no browser keeps them, where whoever listens on this port later could read
// them.
enum class Readers { kAll, kOne };

// What the pages of all readers have in common.
struct PageFrame {
  const Clock& clock;  // outlives it
  StaticFiles files;   // what is there beside the API's addresses, the built page
  HostNames names;     // by which it is known, beside the loopback's
  Snapshots::Bytes unread = std::make_shared<std::atomic<size_t>>(0);
  std::shared_ptr<ListMemory> lists = std::make_shared<ListMemory>();
  // One thread answers them all.
  std::shared_ptr<PlanningTime> planning = std::make_shared<PlanningTime>(clock, PlanningTime::kOfAll);
  std::shared_ptr<PlanningTime> planning_orders =
      std::make_shared<PlanningTime>(clock, PlanningTime::kOfAllOrders);
};

// Of one page.
struct PageLimits {
  // Of events, open at a time.
  size_t streams = std::numeric_limits<size_t>::max();
  // One of events ends then; its reader comes back, and is asked again who he is.
  Duration stream = Duration::max();
  size_t unread = std::numeric_limits<size_t>::max();  // bytes of answers
};

// The skin over a source. Thread-safe as far as the source is, but for Turn().
class Page {
 public:
  // `source` and what `access` leads to must outlive it.
  Page(Source& source, std::shared_ptr<const PageFrame> frame, Readers readers, const PageLimits& limits = {},
       OrderAccess access = {});
  // Of a frame of its own.
  Page(Source& source, const Clock& clock, const std::vector<File>& files = Files(),
       Readers readers = Readers::kAll, OrderAccess access = {});

  HttpResponse Answer(const HttpRequest& request);
  // See EventFeed.
  absl::Status Turn(Duration wait);
  bool IsSomebodyBehind() const { return feed_.IsSomebodyBehind(); }
  bool IsFollowed() const { return feed_.followers() > 0; }
  void End() { feed_.End(); }

 private:
  // What is open for all that ask the same within that time.
  static constexpr Duration kMoment = std::chrono::milliseconds(500);
  // A whole site's jobs are some ten of these; each that is read slowly may be another answer.
  static constexpr size_t kMostUnread = 128 << 20;

  absl::StatusOr<Snapshot> SnapshotOf(const Question& question);
  absl::StatusOr<std::string> Tell(const Question& question);
  absl::StatusOr<std::string> TellPlan(const PlanRequest& plan);
  template <class Request, class Response>
  absl::StatusOr<Response> Ask(absl::Status (Source::*call)(const Request&, Response&),
                               const Request& request);
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
  const std::shared_ptr<const PageFrame> frame_;
  const Readers readers_;
  const PageLimits limits_;
  Snapshots snapshots_;
  Lists lists_{frame_->clock, snapshots_, frame_->lists};
  PlanningBudget planning_;
  PlanningBudget planning_orders_;
  std::optional<OrderDesk> desk_;
  EventFeed feed_;
};

class Pages;

// A page that is served until this is destroyed.
class PageServer {
 public:
  // All that is given must outlive it. To everybody; nobody orders anything.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const HttpOptions& options, Source& source,
                                                           const Clock& clock);
  // To the one reader who comes in by `door`.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const HttpOptions& options, Source& source,
                                                           Orders& orders, Door& door, const Clock& clock);
  // To each reader as `sessions` has him; strangers are told what `strangers` tells.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(const HttpOptions& options, Sessions& sessions,
                                                           Source& strangers, const Clock& clock);
  ~PageServer();
  int port() const { return server_->port(); }
  // With the port that it has: "https://0.0.0.0:7480".
  std::string address() const;

 private:
  // How events are asked for: for so long for the first of them, and again after a pause, since one event at
  // a time would wake every reader a hundred times a second.
  static constexpr Duration kEventWait = std::chrono::milliseconds(200);
  static constexpr Duration kEventPause = std::chrono::milliseconds(50);
  // While whoever is asked does not answer.
  static constexpr Duration kAwayPause = std::chrono::seconds(1);

  PageServer(const HttpOptions& options, Source& source, Readers readers, Sessions* sessions,
             const Clock& clock, OrderAccess access = {});
  absl::Status Serve(const HttpOptions& options, HttpHandler handler);
  void Run();

  const Clock& clock_;
  const std::string scheme_;
  const std::string host_;
  const std::unique_ptr<Pages> pages_;
  std::unique_ptr<HttpServer> server_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread feeding_;
};

}  // namespace siding::page
