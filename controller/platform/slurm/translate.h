// Between Slurm's values and siding's. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/platform/manager.h"
#include "controller/platform/slurm/changes.h"
#include "controller/platform/slurm/wishes.h"

namespace siding::slurm {

// What jobs and agents call this manager.
inline constexpr char kManager[] = "slurm";

// Of a job whose user named its nodes, as a host list.
inline constexpr char kNodesLabel[] = "nodes";

// A user's name, or the number as text if there is none.
using UserName = std::function<std::string(uint32_t uid)>;

// Array elements that have no number of their own yet are no jobs, and left out.
ManagerChanges ManagerChangesOf(const Changes& changes, const std::vector<Partition>& partitions,
                                const UserName& user_name);
// Those that it names; or of the partitions that it names ("a,b"), or of the default ones; nothing: these say
// nothing of it.
std::optional<std::set<NodeId>> NodesOf(const std::vector<Partition>& partitions, const JobSpec& job);
// Nodes of reservations that siding has not made and that have begun or will within the hour.
std::set<NodeId> ReservedByOthers(const std::vector<Reservation>& reservations, Time now);
Wishes WishesOf(const ManagerWishes& wishes);

}  // namespace siding::slurm
