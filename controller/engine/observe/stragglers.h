// Which reports need no look at their job. What is ordered of a gang's ranks next is ordered when the last of
// them has come as far as the others, so of a thousand that come to a barrier one after another only the last
// one's report matters, and a look goes through all of them.
//
// A look that is left out in error comes a second later: no job that is on its way is left alone for longer.
//
// Used under the engine's lock.
#pragma once

#include <map>

#include "controller/engine/state/cluster_view.h"

namespace siding {

class Stragglers {
 public:
  Stragglers(const ClusterState& state, const ClusterView& cluster) : state_(state), cluster_(cluster) {}

  // The job has just been looked at.
  void Note(const JobRecord& job);
  // To be asked of every report that changes what is known of a task. True: it brings its rank forward, and
  // others are still where it was, or behind that.
  bool AreBehind(const NodeId& node, const v1::TaskReport& before, const v1::TaskReport& report);
  void Forget(JobId job) { last_.erase(job); }

 private:
  struct Last {
    int stage = 0;  // of the ranks that are last
    int ranks = 0;  // so many they are
  };

  // How far it has come with what is under way of its job; 0: nothing is, or it has not begun. Higher is
  // later.
  static int StageOf(const JobRecord& job, const v1::TaskReport& report);

  const ClusterState& state_;
  const ClusterView& cluster_;
  std::map<JobId, Last> last_;  // of those that were looked at while they were on their way
};

}  // namespace siding
