#include "controller/engine/observe/expiries.h"

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

// Agents that take a node's name from each other may have different certificates.
constexpr Duration kTellOfExpiryAgain = std::chrono::minutes(1);

}  // namespace

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
  Told& told = told_[whose];
  if (told.ends != ends) {  // it was renewed
    told.ends = ends;
    told.near = Expiry::kFar;
  }
  if (near <= told.near || now - told.at < kTellOfExpiryAgain) return;
  told.near = near;
  told.at = now;
  recorder_.Record(JobId(), Noted{absl::StrCat("certificate, ", whose, ": it ", ExpiryText(ends, now))});
}

}  // namespace siding
