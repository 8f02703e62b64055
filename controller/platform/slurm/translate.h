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

// A user's name, or the number as text if there is none.
using UserName = std::function<std::string(uint32_t uid)>;

// Array elements that have no number of their own yet are no jobs, and left out.
ManagerChanges ManagerChangesOf(const Changes& changes, const std::vector<Partition>& partitions,
                                const UserName& user_name);
// Of the partitions that it names ("a,b"), or of the default ones; nothing: these say nothing of it.
std::optional<std::set<NodeId>> NodesOf(const std::vector<Partition>& partitions, const JobSpec& job);
Wishes WishesOf(const ManagerWishes& wishes);

}  // namespace siding::slurm
