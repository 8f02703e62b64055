// Ranks of a cluster manager's steps whose connections are kept: they are let in when all of a step's are
// there (docs/design/slurm.md). What stands for the job does not matter: it may be its script, another step,
// or, where the step is on some of the job's nodes only, nothing.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/engine/act/network_joins.h"
#include "controller/engine/state/context.h"

namespace siding {

class StepNetworks {
 public:
  StepNetworks(const Context& c, Orders& orders)
      : clock_(c.clock),
        cluster_(c.cluster),
        manager_(c.manager),
        platform_(c.platform),
        joins_(c.cluster, orders) {}

  // What an agent has reported of a task, any task.
  void Note(const NodeId& node, const v1::TaskReport& report);
  // Sends what the ranks of steps with news have not been told. A rank that never comes keeps its peers
  // waiting for ten minutes. One that cannot be started, or goes on from another image, is the end of this
  // start for all that wait.
  void Act();
  // The next Act() is for all steps: for what time alone has changed, and to tell again what was not heard.
  void LookAtAll();

 private:
  struct Step {
    JobId job;
    int incarnation = 0;
    int first_rank = 0;
    auto operator<=>(const Step&) const = default;  // NOLINT(modernize-use-nullptr): there is none
  };
  struct Gathering {
    Time since;
    int ranks = 0;
    std::map<int, std::set<NodeId>> where;  // who says that the rank is there
    std::set<int> ended;                    // as they were to; their reports may be gone
    std::string refused;                    // why nothing comes of this start
  };
  struct Come {
    int count = 0;
    std::vector<NetworkRank> ranks;  // of them, those that have not ended
  };

  // Where its ranks may be; nothing: anywhere.
  std::optional<std::set<NodeId>> NodesOf(JobId job) const;
  Come WhoHasCome(const Step& step, Gathering& gathering) const;
  static std::string WhyApart(const std::vector<NetworkRank>& ranks);
  // Nothing is left to be told.
  bool ActOn(const Step& step, Gathering& gathering);

  const Clock& clock_;
  const ClusterView& cluster_;
  const ManagerView& manager_;
  const Platform& platform_;
  NetworkJoins joins_;
  std::map<Step, Gathering> gathering_;
  std::set<Step> changed_;
};

}  // namespace siding
