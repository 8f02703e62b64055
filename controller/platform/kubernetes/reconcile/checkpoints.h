// What users see of images: an object of the kind Checkpoint for each that siding keeps of a pod's job.
//
// The objects follow from what the engine knows, and nothing follows from them. One that somebody has deleted
// is written again, one whose image is gone is deleted, and one that another has made is left alone. So a
// controller may end after any step, and the next one goes on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "controller/platform/kubernetes/client/api_client.h"
#include "controller/platform/kubernetes/objects/checkpoint.h"
#include "controller/platform/kubernetes/reconcile/optional_kind.h"
#include "controller/platform/kubernetes/reconcile/pauses.h"

namespace siding::kubernetes {

struct CheckpointStep {
  struct Make {
    std::shared_ptr<const Json> object;
    std::shared_ptr<const Json> status;  // a server takes it by a call of its own
  };
  struct Write {
    std::shared_ptr<const Json> patch;
  };
  struct Remove {
    Preconditions only;
  };
  struct LeaveAlone {};  // another's object has the name
  ObjectName name;
  std::variant<Make, Write, Remove, LeaveAlone> what;
};
// Pure. At most one for each object; of those that are another's, only where they are in the way.
std::vector<CheckpointStep> StepsTowards(const std::vector<CheckpointView>& wanted, const Objects& there,
                                         const std::string& writer);

// Not thread-safe. Watches them as soon as the server has them.
class CheckpointObjects {
 public:
  struct Sources {
    std::function<std::vector<CheckpointView>()> wanted;
    std::function<void()> wake;  // a round is due; called on another thread
    // Something was done to this, or not. False: it has to be tried again.
    std::function<bool(const std::string& target, const std::string& action, const absl::Status&)> log;
  };
  // References must outlive it. `writer`: kWriterLabel.
  CheckpointObjects(Transport& transport, Pacer& pacer, const Clock& clock, std::string writer,
                    Sources sources);

  void Round(ApiClient& client);

 private:
  void Do(ApiClient& client, const CheckpointStep& step);
  absl::Status Make(ApiClient& client, const ObjectName& name, const CheckpointStep::Make& step);

  const Clock& clock_;
  const std::string writer_;
  const Sources sources_;
  std::map<ObjectName, Time> made_;  // when last, whether it was taken or not; of a moment ago
  Pauses pauses_;
  int left_ = 0;       // so many calls may still be made in this round
  OptionalKind kind_;  // last: ends first
};

}  // namespace siding::kubernetes
