// Where the page's reader gives orders, and asks what they would do.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "common/mutex.h"
#include "page/server/errand.h"
#include "page/server/http.h"
#include "page/server/orders.h"
#include "page/server/planning_time.h"

namespace siding::page {

// Each order is given once, however often it is sent: a browser, or its reader, sends it again when the
// answer did not come. Thread-safe as far as `orders` is.
class OrderDesk {
 public:
  // `orders` and `planning` must outlive it. `token`: what an order has to have with it.
  OrderDesk(Orders& orders, std::string token, PlanningBudget& planning)
      : orders_(orders), token_(std::move(token)), planning_(planning) {}

  // Of a request that IsErrand(), and that RefuseForeign() has let through.
  HttpResponse Answer(const HttpRequest& request);

 private:
  struct Given {
    std::string what;  // the order
    HttpResponse answer;
  };
  // Older ones are forgotten. By what they did the plans that they rest on do not hold any more.
  static constexpr size_t kMostKept = 1000;

  HttpResponse Tell() const;
  HttpResponse Plan(const v1::ActionRequest& action);
  HttpResponse Give(const v1::PageOrder& order);
  void Keep(const std::string& key, Given given) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Orders& orders_;
  const std::string token_;
  PlanningBudget& planning_;
  Mutex mutex_;
  std::map<std::string, Given> given_ ABSL_GUARDED_BY(mutex_);  // by key
  std::deque<std::string> keys_ ABSL_GUARDED_BY(mutex_);        // oldest first
};

}  // namespace siding::page
