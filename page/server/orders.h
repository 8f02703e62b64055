// Whom the page's server gives orders to, in the name of one reader.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "siding/v1/page.pb.h"

namespace siding::page {

class Orders {
 public:
  virtual ~Orders() = default;

  // What a verb would do; nothing is done. kUnavailable, kDeadlineExceeded, kCancelled: no answer.
  virtual absl::Status PlanAction(const v1::ActionRequest& request, v1::ActionPlan& response) = 0;
  // Made at most once. kDeadlineExceeded, kCancelled, kAborted, kUnknown, kInternal: it is not known whether
  // it was carried out. Other errors: nothing was done; kUnavailable: nobody was reached who could.
  virtual absl::Status Order(const v1::PageOrder& order, v1::PageOrdered& response) = 0;
};

// What a reader may order by. The page of one who has none is read only.
struct OrderAccess {
  Orders* orders = nullptr;  // nullptr: he orders nothing
  std::string token;         // what each of his orders has to have with it
};

}  // namespace siding::page
