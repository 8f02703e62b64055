// The steps from what is observed in a cluster to what siding wants of it, in their order. Pure, but for
// Apply.
//
// The desired state is the whole of it at any moment: whatever bears siding's mark (objects/marks.h) and is
// not desired any more is taken back, whoever did it. So a controller that was restarted states its desired
// state again and is done, and with an empty one no node is kept.
//
// Each call says of which version of its object it is, or of which uid: what has changed meanwhile is looked
// at again, and a call that was made before does nothing.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/objects/eviction.h"
#include "controller/platform/kubernetes/watch/job_table.h"
#include "controller/platform/manager.h"

namespace siding::kubernetes {

struct Patch {
  Resource resource;
  ObjectName name;
  std::shared_ptr<const Json> body;  // a merge patch, with the version or the uid that it is of
};
struct Binding {
  ObjectName pod;
  std::string uid;
  std::string node;
  Amounts requests;     // of the pod
  Amounts allocatable;  // of the node, with
  int most_pods = 0;
};
struct Step {
  std::string target;  // "node n1", "pod default/a": for people, as the following
  std::string action;  // "kept for job 42"
  std::variant<Patch, Binding, Eviction> call;
  bool after_last = false;  // only if the step before it was done
};

// A pod gets its node only when there is room on the nodes of its whole gang, for a kubelet turns down what
// it has no room for, and the pod has failed then. One with siding's gate is told its node and let go; its
// own scheduler does the rest. Nothing is placed on a node before its taint has been seen: until then others
// may come. The taint goes when the job's pods run: what made way is not turned away by it any more, and may
// come back as soon as they end.
//
// `unwanted`: pods that are to go. Where their node is to be kept for somebody, not before that was seen: any
// other that waits could take the room.
std::vector<Step> StepsTowards(const DesiredState& desired, const std::vector<Eviction>& unwanted,
                               const JobTable& table, Time now);

// Of a patch or a binding. Before a binding the node's pods are read: what was seen of them may be older than
// the taint. kAborted: there is no room.
absl::Status Apply(ApiClient& client, const Step& step);
// What is meant was done by another, or was of an object that is another by now: it shows with the next
// change.
bool IsOverTaken(const absl::Status& status);

}  // namespace siding::kubernetes
