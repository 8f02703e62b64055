// What siding does on a Kubernetes cluster, round by round: observe, tell the engine, do what is wanted. Has
// no thread and waits for nothing but the API server's answers, so that whoever drives it says when a round
// is: the platform's worker, or a simulation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/kubernetes_platform.h"
#include "controller/platform/kubernetes/reconcile/events.h"
#include "controller/platform/kubernetes/watch/informer_state.h"
#include "controller/platform/kubernetes/watch/job_table.h"

namespace siding::kubernetes {

// What was told since the last round, and how the watches are now.
struct Mail {
  std::vector<ObjectChange> nodes;
  std::vector<ObjectChange> pods;
  std::vector<ObjectChange> budgets;  // where they are watched
  std::optional<DesiredState> desired;
  std::vector<std::pair<JobId, PodEvent>> told;  // of jobs, whose pods are still to be found
  // As it is now.
  bool synced = false;  // both, once
  bool nodes_healthy = true;
  bool pods_healthy = true;
};

// One call at a time, but for what is thread-safe.
class Rounds {
 public:
  virtual ~Rounds() = default;
  // Reads the seal. Once without an error before the first round; the client must outlive the last one.
  virtual absl::Status Begin(ApiClient& client) = 0;
  // `newest`: what is desired by now, if that has been said since the mail. It is asked when the speaker has
  // said whom to evict: whoever orders that has said before for whom.
  using Newest = std::function<std::optional<DesiredState>()>;
  virtual void Round(Mail mail, PlatformListener& listener, NodeSpeaker& speaker, const Newest& newest) = 0;
  // What is to be said on pods since the last call. Nothing in a round waits for it.
  virtual std::vector<PodEvent> TakeEvents() = 0;
  // Of the platform. Thread-safe, and may be called at any time, by the listener too.
  virtual std::optional<std::set<NodeId>> NodesFor(const JobSpec& job) const = 0;
  // What a pod is to siding; nothing: it is not known.
  virtual std::optional<PodStanding> StandingOf(const ObjectName& pod) const = 0;
  virtual std::string WhoIs(JobId job) const = 0;
  // Something was done to `target`, or not, in a round or right after it. What goes on failing in the same
  // way is said once. False: it has to be tried again.
  virtual bool Log(const std::string& target, const std::string& action, const absl::Status& status) = 0;
};

// `clock` must outlive it.
std::unique_ptr<Rounds> NewRounds(const Clock& clock, const PlatformOptions& options);

}  // namespace siding::kubernetes
