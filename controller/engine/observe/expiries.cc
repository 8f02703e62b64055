#include "controller/engine/observe/expiries.h"

#include "absl/strings/str_cat.h"

namespace siding {

void Expiries::Tell() {
  if (own_) Tell("the controller's", *own_);
  for (const auto& [node, observed] : state_.observed_nodes) {
    const int64_t ends = observed.heartbeat.certificate_ends_us();
    if (observed.connected && ends != 0)
      Tell(absl::StrCat("the agent's on node ", node.value()), FromMicros(ends));
  }
}

void Expiries::Tell(const std::string& whose, Time ends) {
  const Time now = clock_.Now();
  const Expiry near = HowNear(ends, now);
  auto& [which, told] = told_[whose];
  if (which != ends) {  // it was renewed
    which = ends;
    told = Expiry::kFar;
  }
  if (near <= told) return;
  told = near;
  recorder_.Record(JobId(), Noted{absl::StrCat("certificate, ", whose, ": it ", ExpiryText(ends, now))});
}

}  // namespace siding
