// Has pods evicted, again and again until they are gone. A disruption budget may refuse that.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/units.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/objects/eviction.h"
#include "controller/platform/kubernetes/reconcile/events.h"

namespace siding::kubernetes {

// Not thread-safe.
class Evictions {
 public:
  struct Rules {
    Duration again{0};        // a pod that is still there is evicted again after this
    Duration ask_budgets{0};  // one that is saved, and that budgets keep, is deleted after this
  };
  struct Ends {
    std::function<bool(const std::string& target, const std::string& action, const absl::Status&)> log;
    std::function<void(PodEvent)> say;
  };
  // Who wants a pod to go.
  struct Asker {
    // Right before it is evicted: the calls since that was said may have taken long.
    std::function<bool()> is_unwanted;
    // What was asked with `only_ask`; and of others that are not saved, that they were refused.
    std::function<void(const absl::Status&)> on_answer;
  };

  Evictions(const Rules& rules, Ends ends) : rules_(rules), ends_(std::move(ends)) {}
  // Before the evictions of a round. Of all others it forgets since when budgets keep them.
  void Keep(const std::vector<Eviction>& unwanted, Time now);
  // What came of the call; OK if none is due.
  absl::Status Evict(ApiClient& client, const Eviction& eviction, Time now, const Asker& asker);

 private:
  absl::Status Ask(ApiClient& client, const Eviction& eviction, const Asker& asker);
  absl::Status LearnHow(ApiClient& client);
  void DeleteSaved(ApiClient& client, const Eviction& eviction, const absl::Status& why);

  const Rules rules_;
  const Ends ends_;
  std::string version_;                  // the server's, of evictions
  std::map<std::string, Time> evicted_;  // by uid: when last
  std::map<std::string, Time> refused_;  // by uid: since when budgets keep them
};

}  // namespace siding::kubernetes
