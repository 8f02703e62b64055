// Kubernetes as siding's platform: what is observed there goes to a sink, and what is desired is brought
// about.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/units.h"
#include "controller/platform/kubernetes/client/object.h"
#include "controller/platform/kubernetes/client/pacer.h"
#include "controller/platform/kubernetes/client/transport.h"
#include "controller/platform/kubernetes/objects/checkpoint.h"
#include "controller/platform/kubernetes/reconcile/request_status.h"
#include "controller/platform/kubernetes/reconcile/seal.h"
#include "controller/platform/kubernetes/speak/pod_speaker.h"
#include "controller/platform/platform.h"

namespace siding::kubernetes {

struct PlatformOptions {
  std::set<std::string> left_alone = {"kube-system"};  // namespaces whose pods siding does not touch
  std::string space = "siding";  // of siding's own objects: the ConfigMap of numbers, the Secret of the seal
  Duration round = std::chrono::seconds(1);  // what failed is tried again then, or with the next change
  Duration least_apart =
      std::chrono::milliseconds(100);              // rounds: what comes meanwhile is looked at together
  Duration evict_again = std::chrono::seconds(5);  // a pod that is still there is evicted again after this
  // A pod that is saved and that budgets keep is deleted after this.
  Duration ask_budgets = std::chrono::seconds(10);
  bool saves = false;    // agents freeze and save pods, and a job goes on with the next pod of its owner
  HostPaths host_paths;  // folders of nodes that pods which are saved may have mounted
  Duration look_for_owner = std::chrono::seconds(10);  // whether the owner of a job without a pod is there
  // A change whose answer was lost is done by then, or never: servers give each call 34 seconds.
  Duration settled = std::chrono::seconds(40);
  SealKeeper* seal_keeper = nullptr;  // must outlive the platform; none: the key is in its Secret alone
};

// Called on a thread of the platform's, one call at a time, and without a lock.
class PlatformListener {
 public:
  virtual ~PlatformListener() = default;
  // What has changed in the queue; all of it at the first time.
  virtual void OnChanges(ManagerChanges changes) = 0;
  // What is to be said of a job with a deadline; nothing: it is not known.
  virtual std::optional<Outlook> OutlookOf(JobId) { return {}; }
  // The images that are kept of pods' jobs, and what there is of those that are being made or deleted.
  virtual std::vector<CheckpointView> CheckpointsKept() { return {}; }
  // The highest number of a job that is remembered, whose pods may be gone; 0: none is.
  virtual JobId HighestJob() = 0;
};

class KubernetesPlatform : public Platform {
 public:
  // Begins to watch, once. Nobody hears anything before all pods and nodes are known. SetDesired() may come
  // before. Both must outlive Stop().
  virtual void Start(PlatformListener& listener, NodeSpeaker& speaker) = 0;
  // Says this on the pods of a job: `reason` is a word such as "SidingRefused", `key` tells it from others of
  // the same reason. Thread-safe. Lost if the pods are gone by then.
  virtual void Tell(JobId job, bool warning, std::string reason, std::string text, std::string key) = 0;
  // "default/steer (UID 0b1c...)", the pod that a job is, or "job 7" where it has none. Thread-safe.
  virtual std::string WhoIs(JobId job) const = 0;
  // Events on pods that could not be said, and were given up. Thread-safe.
  virtual int64_t lost_events() const = 0;
  // Waits for a call that is under way; nothing is heard or done afterwards.
  virtual void Stop() = 0;
};

// Changes go through the same transport: one that a guard has to allow (client/guarded_transport.h) is tried
// again as any that fails. `pacer` and `clock` must outlive it.
std::unique_ptr<KubernetesPlatform> NewKubernetesPlatform(std::unique_ptr<Transport> transport, Pacer& pacer,
                                                          const Clock& clock, const PlatformOptions& options);

}  // namespace siding::kubernetes
