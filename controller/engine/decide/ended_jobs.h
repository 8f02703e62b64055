// Removes the records of jobs that ended long ago, so that the controller's memory, its loops and its replay
// do not grow without bound.
//
// Used under the engine's lock.
#pragma once

#include <set>
#include <vector>

#include "controller/engine/state/context.h"

namespace siding {

class EndedJobs {
 public:
  explicit EndedJobs(const Context& c)
      : state_(c.state),
        policy_(c.policy),
        retention_(c.retention),
        clock_(c.clock),
        platform_(c.platform),
        cluster_(c.cluster),
        manager_(c.manager),
        recorder_(c.recorder),
        agenda_(c.agenda) {}

  // Deletes the images of jobs that failed long enough ago.
  void ExpireFailed();
  // Records that the oldest ended jobs are forgotten, and returns them.
  std::vector<JobId> PurgeEnded();
  // Removes some events that are not needed any more from the journal.
  void CompactJournal();

 private:
  std::vector<JobId> Purgeable();
  std::set<JobId> ReferencedJobs() const;
  bool HasNoImage(const JobRecord& job);
  bool ItsNodesAreThere(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Retention& retention_;
  const Clock& clock_;
  const Platform& platform_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  Recorder& recorder_;
  Agenda& agenda_;
  Time purge_not_before_;
  Time compact_not_before_;
  Time expire_failed_at_;
};

}  // namespace siding
