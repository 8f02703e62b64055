// Faulty nodes: nothing can be started there, for a reason of the node's own. It would look idle and take one
// waiting job after another. So nothing new is placed on it until it is well again. What runs there is left
// alone.
//
// Either its agent says so, and takes it back: it tries, with what a start needs (agent/node/self_check.h).
// Or a start has failed there that the agent blames on the node. Then it is left out for a pause, and after
// it one start is tried. If that fails as well the pause is twice as long. The pause grows only if different
// jobs fail: whatever one job does, it does not keep a node from others for long.
//
// A restore that fails says nothing of starts: it needs more, such as the tier that its image is in.
//
// Used under the engine's lock.
#pragma once

#include <string>

#include "controller/engine/state/context.h"

namespace siding {

class NodeFaults {
 public:
  // Longer than a job takes to be tried on some other nodes: it is not to come back at once.
  static constexpr Duration kFirstPause = std::chrono::seconds(5);
  static constexpr Duration kLongestPause = std::chrono::minutes(10);

  explicit NodeFaults(const Context& c)
      : observed_(c.observed),
        clock_(c.clock),
        cluster_(c.cluster),
        accounts_(c.accounts),
        recorder_(c.recorder),
        agenda_(c.agenda) {}

  // Its agent has dialled. One that is new has not failed yet.
  void OnHello(const NodeId& node, ObservedNode& observed, const v1::Hello& hello);
  // What its agent says of the node now; empty: nothing is known against it.
  void OnWord(const NodeId& node, ObservedNode& observed, const std::string& problem);
  // Some rank of the job has not started.
  void OnFailedStart(const JobRecord& job);
  // All of its ranks run, which were started or restored.
  void OnStarted(const JobRecord& job);
  // To be called once a second.
  void EndPauses();

 private:
  void Settle(const NodeId& node, ObservedNode& observed);
  void Tell(const NodeId& node, ObservedNode& observed, const std::string& why);
  void TellItIsOver(const NodeId& node, ObservedNode& observed);

  ObservedState& observed_;
  const Clock& clock_;
  const ClusterView& cluster_;
  NodeAccounts& accounts_;
  Recorder& recorder_;
  Agenda& agenda_;
};

}  // namespace siding
