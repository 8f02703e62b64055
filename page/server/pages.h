// A page for each who reads at the moment, since each sees something else of the same cluster.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "common/units.h"
#include "page/server/page.h"
#include "page/server/sessions.h"

namespace siding::page {

// Thread-safe, but for Turn().
class Pages {
 public:
  // A reader whose page nobody follows is forgotten when he has asked nothing for that long.
  static constexpr Duration kForgetAfter = std::chrono::minutes(1);
  // At a time. Each costs a reading of every event.
  static constexpr size_t kMost = 1024;
  // Who is nobody any more follows no longer than that: he is known by his requests.
  static constexpr Duration kLongestStream = std::chrono::minutes(10);
  // Of answers to one reader, so that there are some for others.
  static constexpr size_t kMostUnread = 32 << 20;

  // `strangers` is asked for those that `sessions` does not know; nullptr: it knows nobody, and `access` is
  // that of the one reader behind a door. All must outlive this.
  Pages(Source& strangers, std::shared_ptr<const PageFrame> frame, Readers readers, Sessions* sessions,
        OrderAccess access = {})
      : sessions_(sessions),
        frame_(std::move(frame)),
        strangers_(strangers, frame_, readers, PageLimits(), std::move(access)) {}

  HttpResponse Answer(const HttpRequest& request);
  // See EventFeed. An error: the strangers' source is away, or refuses its events.
  absl::Status Turn(Duration wait);
  void End();

  size_t readers() const;  // that are known

 private:
  struct Reader {
    explicit Reader(const Session& session, const std::shared_ptr<const PageFrame>& frame)
        : source(session.source),
          orders(session.orders),
          page(*source, frame, Readers::kOne, {session.most_streams, kLongestStream, kMostUnread},
               {orders.get(), session.order_token}) {}
    const std::shared_ptr<Source> source;
    const std::shared_ptr<Orders> orders;
    Page page;
  };
  struct Known {
    std::shared_ptr<Reader> reader;
    Time asked;  // last
  };

  absl::StatusOr<std::shared_ptr<Reader>> ReaderOf(const Session& session);
  std::vector<std::shared_ptr<Reader>> Current();  // without those who are forgotten

  Sessions* const sessions_;
  const std::shared_ptr<const PageFrame> frame_;
  Page strangers_;
  mutable Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace siding::page
