// The stores of checkpoints: one shared tier, and a local one on each node. They survive everything but a
// deletion.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "common/ids.h"
#include "common/units.h"
#include "siding/v1/types.pb.h"

namespace siding::simulation {

// Where an image lies: on a node's own disk, or for an empty name on the shared tier.
struct ImageName {
  std::string disk;
  std::string checkpoint;
  int rank = 0;
  auto operator<=>(const ImageName&) const = default;
};
inline ImageName NameImage(v1::Tier tier, const NodeId& node, const std::string& checkpoint, int rank) {
  return {tier == v1::LOCAL ? node.value() : "", checkpoint, rank};
}
inline std::string ToString(const ImageName& name) {
  return name.checkpoint + " rank " + std::to_string(name.rank) +
         (name.disk.empty() ? " on the shared tier" : " on the disk of " + name.disk);
}

struct Image {
  Duration work{0};     // that the rank had done
  int incarnation = 0;  // of the task that was dumped
  bool damaged = false;
  std::string digest;    // as Manifest::digest
  bool refused = false;  // it is as written, and criu takes it nowhere
  Time stopped, let_go;  // when it stood still to be dumped
};

// A value; not thread-safe.
struct ImageStore {
  std::map<ImageName, Image> images;   // visible ones
  std::map<ImageName, NodeId> drafts;  // and who writes them
  Time full_until;                     // no draft can be written
  Time shared_full_until;              // on the shared tier
  uint64_t digests = 0;                // that were given to images
  // What programs have saved themselves, by job and rank.
  std::map<std::pair<JobId, int>, Duration> own_saves;

  bool IsFull(v1::Tier tier, Time now) const {
    return now < full_until || (tier == v1::SHARED && now < shared_full_until);
  }
};

}  // namespace siding::simulation
