// What is free on each node. It is needed after almost every event, so it is cached, and computed again only
// for nodes on which something changed.
//
// Not thread-safe: used under the engine's lock. What is passed in must outlive it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/clock.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/cluster_view.h"
#include "controller/engine/state/manager_view.h"
#include "controller/engine/state/pending_starts.h"
#include "controller/platform/platform.h"
#include "model/policy.h"

namespace siding {

class NodeAccounts {
 public:
  struct Account {  // of a usable node
    Resources capacity;
    Resources free;  // held neither by jobs nor by strays; it may be promised to a request that waits
    bool operator==(const Account&) const = default;
  };

  NodeAccounts(const ClusterState& state, const Clock& clock, const ClusterView& cluster,
               const ManagerView& manager, const PendingStarts& starts)
      : state_(state), clock_(clock), cluster_(cluster), manager_(manager), starts_(starts) {}

  // Something happened that may have changed the node's account.
  void Touch(const NodeId& node) { stale_.insert(node); }

  // Something happened that may have changed all accounts.
  void TouchAll();
  // ... those of the nodes that the job holds.
  void TouchNodesOf(JobId id);
  // ... those of the nodes on which a task of the job was seen.
  void TouchTasksOf(JobId job);
  // Of the usable nodes.
  const std::map<NodeId, Account>& Accounts() const;
  // Of the usable nodes, were they empty.
  std::map<NodeId, Resources> Capacities() const;
  // What is free on each usable node, as these requests see it, their own reservations included. None: as the
  // batch queue sees it, without what is reserved or held for suspended jobs.
  std::map<NodeId, Resources> Room(const std::vector<JobId>& requests) const;
  // The same for one request, as its plan stands. Others hold for themselves only what they do not wait for
  // as yet: when it is there, there will be room for all. `leaving`: whose room the caller adds.
  std::map<NodeId, Resources> RoomFor(const JobRecord& request, std::set<JobId> leaving = {}) const;
  // The same on faulty nodes, for what is frozen there: to go on it needs no start.
  std::map<NodeId, Resources> RoomToContinue() const;
  // Processes that should be gone and are not yet, or that may be about to begin: nothing is granted before
  // it is observed free.
  Resources HeldByStrays(const NodeId& node) const;
  // A frozen job can continue where it is. What it gave up when it was frozen may be a request's now, though
  // it did not make way for one.
  bool HasRoomToContinue(const JobRecord& job) const;
  // Other jobs that run there, once for each of their ranks.
  std::vector<const JobRecord*> RunningBeside(const JobRecord& job, const NodeId& node) const;
  // On those of its nodes that are connected, cordoned or not: what running jobs leave.
  std::map<NodeId, Resources> RoomBesideOthers(const JobRecord& job) const;
  // For tests: the cache has what would be computed now.
  bool IsConsistent() const;

 private:
  std::optional<Account> AccountOf(const NodeId& node) const;
  Account CountOn(const NodeId& node) const;
  void TakeReserved(std::map<NodeId, Resources>& room, const std::vector<JobId>& requests) const;
  std::map<NodeId, Resources> ClaimsOf(const JobRecord& request, std::set<JobId>& counted) const;
  bool IsEnding(const JobRecord& request) const;
  void GiveWhatIsFrozen(std::map<NodeId, Resources>& room) const;
  void TakeLeftTasks(std::map<NodeId, Resources>& room) const;

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const PendingStarts& starts_;
  mutable std::map<NodeId, Account> accounts_;
  mutable std::set<NodeId> stale_;  // whose accounts are to be computed again
};

}  // namespace siding
