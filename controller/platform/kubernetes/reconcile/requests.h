// OnDemandRequests are served: their pods are made, and their status is written.
//
// The steps are such that a controller may end after any of them, and the next one goes on. A request is
// first accepted in its status, then its pods are made, by names that follow from it: one that is there
// already is not made twice. What its pods are is looked at anew in each round, and the status is written
// when it differs, of the version that was read.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/reconcile/optional_kind.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"
#include "controller/platform/kubernetes/reconcile/request_status.h"

namespace siding::kubernetes {

// Not thread-safe. Watches requests as soon as the server has them: their definition may be installed later.
class Requests {
 public:
  // What is known beside the requests themselves.
  struct Sources {
    std::function<std::optional<PodStanding>(const ObjectName&)> pod;
    std::function<std::optional<Outlook>(JobId)> outlook;
    std::function<void()> wake;  // a round is due; called on another thread
    // Something was done to this, or not. False: it has to be tried again.
    std::function<bool(const std::string& target, const std::string& action, const absl::Status&)> log;
    // All requests, or nothing: they are not known at the moment. Not set: they are watched, by a thread.
    std::function<std::optional<Objects>()> look = nullptr;
  };
  // References must outlive it. No pods are made in the namespaces `left_alone`.
  Requests(Transport& transport, Pacer& pacer, const Clock& clock, std::set<std::string> left_alone,
           Sources sources);

  // All pods have to be known, as of a moment after the round before.
  void Round(ApiClient& client);

 private:
  struct Problem {
    Time again_at;
    absl::Status why;
  };

  void Serve(ApiClient& client, Request request);
  // False: it is not to be served, or not yet. True: `request` is as the server has it now.
  bool Accept(ApiClient& client, Request& request);
  // Those that are missing, as far as this round's share goes; an error: why not.
  absl::Status MakePods(ApiClient& client, const Request& request, const RequestNow& there);
  RequestNow LookAt(const Request& request) const;
  // As the server has it then; nothing: it did not take it, and there will be another round.
  std::optional<Request> Write(ApiClient& client, const Request& request, const Json& status);

  const Clock& clock_;
  const std::set<std::string> left_alone_;
  const Sources sources_;
  std::map<std::string, Problem> problems_;  // by uid: of those whose pods could not be made
  Pauses pauses_;                            // by uid: of statuses that the server did not take
  int left_ = 0;                             // so many pods may still be made in this round
  OptionalKind kind_;                        // last: ends first
};

}  // namespace siding::kubernetes
