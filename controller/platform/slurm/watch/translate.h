// Between Slurm's values and siding's. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/platform/manager.h"
#include "controller/platform/slurm/watch/changes.h"

namespace siding::slurm {

// What jobs and agents call this manager.
inline constexpr char kManager[] = "slurm";

// Labels of a job whose user named its nodes (a host list), or those that it must not have, or the features
// that they are to have; and of one that shares its nodes with nobody.
inline constexpr char kNodesLabel[] = "nodes";
inline constexpr char kExcludeLabel[] = "exclude";
inline constexpr char kConstraintLabel[] = "constraint";
inline constexpr char kExclusiveLabel[] = "exclusive";

// What jobs may start on, as far as it does not change with every job.
struct Inventory {
  struct Node {
    int cpus = 0;
    std::vector<std::string> features;
    bool operator==(const Node&) const = default;
  };
  std::vector<Partition> partitions;
  std::map<NodeId, Node> nodes;
  bool operator==(const Inventory&) const = default;
};

// A user's name, or the number as text if there is none.
using UserName = std::function<std::string(uint32_t uid)>;

// Array elements that have no number of their own yet are no jobs, and left out.
ManagerChanges ManagerChangesOf(const Changes& changes, const Inventory& inventory,
                                const UserName& user_name);
// With what these say of nodes.
Inventory WithNodes(Inventory inventory, const std::vector<Change<QueueNode>>& changes);
// Those that it names; or of the partitions that it names ("a,b"), or of the default ones; nothing: these say
// nothing of it. Without those that its labels rule out.
std::optional<std::set<NodeId>> NodesOf(const Inventory& inventory, const JobSpec& job);
// A job that is exclusive takes all that a node has. If its nodes are not all alike, it is planned on those
// of the kind that most of them are of.
void TakeWholeNodes(JobSpec& job, const Inventory& inventory);
// Nodes of reservations that siding has not made and that have begun or will within the hour.
std::set<NodeId> ReservedByOthers(const std::vector<Reservation>& reservations, Time now);

}  // namespace siding::slurm
