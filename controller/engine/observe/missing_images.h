// Images of local tiers that are in memory: what a node had, and has no more since its machine has restarted.
//
// An agent does not know what it had; it names what it has. It is compared with what counted when the list
// before was heard, or, of a hello, which is heard before all reports of its connection, with what counts
// now: an image is in its place before it counts, and is deleted after it has ceased to.
//
// Used under the engine's lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controller/engine/decide/recovery.h"
#include "controller/engine/state/context.h"

namespace siding {

class MissingImages {
 public:
  MissingImages(const Context& c, Recovery& recovery)
      : state_(c.state),
        observed_(c.observed),
        clock_(c.clock),
        recorder_(c.recorder),
        agenda_(c.agenda),
        recovery_(recovery) {}

  // In a hello.
  void OnHello(const NodeId& node, const v1::KeptImages& kept);
  // Later on that connection.
  void OnKept(const NodeId& node, const v1::KeptImages& kept);
  // An image that is missing may have been copied into shared storage without that being known: its node is
  // asked to copy it, which finds out. Those of nodes without shared storage are gone.
  void Settle();
  // The node has copied it, or found it there.
  void OnCopied(const CheckpointId& id, int rank);
  // The node has found it nowhere.
  void OnNotFound(const CheckpointId& id, int rank);

 private:
  using Image = std::pair<CheckpointId, int>;  // and rank
  std::vector<Image> ImagesOn(const NodeId& node) const;
  void Judge(const NodeId& node, const v1::KeptImages& kept, const std::vector<Image>& images);
  void Lose(const Image& image);

  const ClusterState& state_;
  ObservedState& observed_;
  const Clock& clock_;
  Recorder& recorder_;
  Agenda& agenda_;
  Recovery& recovery_;
};

}  // namespace siding
