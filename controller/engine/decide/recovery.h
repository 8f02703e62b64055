// Starts and restores that failed: what is tried again, when and where, and what is never done unasked.
//
// An image is given up for two reasons only. Its checksums say that it is not what was written: it is read
// and compared before each restore. Or CRIU itself refuses it again and again, on different nodes, and blames
// nothing around it: what dump accepts and restore does not. Any other failure comes from its surroundings: a
// file of the job is missing, a file system is away, a port is in use, a node is broken. Such an image is
// kept, and tried again.
//
// Nor does a job fail because of nodes that cannot start it: it is tried elsewhere, and less and less often.
// Such nodes are left out for all jobs (observe/node_faults.h).
//
// A job of which nothing is left to go on from starts from the beginning by itself only if it may
// (MayStartOverAfterLoss); else its user or an operator has to ask.
//
// Used under the engine's lock.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "controller/engine/state/context.h"

namespace siding {

class Recovery {
 public:
  // A node that had no GPU or no key for a job, or could not thaw it, may be able to after this, or another
  // node may be free.
  static constexpr Duration kLackPause = std::chrono::seconds(10);
  // For a node's word on an image that is missing.
  static constexpr Duration kLookPatience = std::chrono::seconds(30);

  // By CRIU, of one image.
  struct Refusals {
    CheckpointId of;
    int count = 0;
    Time first;
    std::map<int, std::set<NodeId>> by;  // rank -> nodes that refused its part
  };
  struct Retry {
    int rounds = 0;
    Time at;  // until then it is tried on nodes that it has not been tried on in this round only
    std::set<NodeId> tried;  // in this round
    Refusals refusals;       // a new controller counts from 0
  };

  explicit Recovery(const Context& c)
      : state_(c.state), clock_(c.clock), cluster_(c.cluster), recorder_(c.recorder) {}

  // It is not started, restored or thawed before.
  void HoldBack(JobId job, Time until) { not_before_[job] = until; }
  // Until when; none: it is not held back.
  std::optional<Time> HeldBackUntil(JobId job) const;
  // When the next round begins; it has one.
  Time NextRound(JobId job) const { return retries_.at(job).at; }
  // It has been restored, or is to continue from another image: all nodes may be tried again.
  void ForgetRetries(JobId job) { retries_.erase(job); }
  // It need not wait any longer. False: it did not.
  bool TryAtOnce(JobId job) { return not_before_.erase(job) + retries_.erase(job) > 0; }

  // What the job asked for cannot be done, or a node could not do it: then it is tried again.
  void StartFailed(const JobRecord& job, int rank, const v1::TaskReport& report);
  // Its image is damaged or refused for good, or is tried again elsewhere or later.
  void RestoreFailed(const JobRecord& job, int rank, const v1::TaskReport& report);
  // Back to the newest checkpoint that is good, or what the program saved; to the beginning only if it may.
  void FallBack(const JobRecord& job, const std::string& why);
  // From the beginning. Its user or an operator has asked for it, or the job allows it.
  void StartOver(const JobRecord& job, const std::string& why, const std::string& by = "");
  // Its images that were refused count again. False: there are none.
  bool TakeRefusedBack(const JobRecord& job, const std::string& by);
  // It is parked and has nothing to continue from: its user or an operator has to decide.
  bool NeedsDecision(const JobRecord& job) const;
  // It is not to be started or restored now, whatever is free.
  bool MustWait(const JobRecord& job) const;
  // Nodes on which it is not tried for now; null: it may be tried on any.
  const std::set<NodeId>* NotOn(const JobRecord& job) const;
  bool WaitsForNextRound(const JobRecord& job) const;
  // A method that failed is tried again later: a GPU kernel of minutes ends, and memory is unmapped.
  void RegainMethods();

  // What is in shared storage of it is damaged: if its images are on its nodes' own disks as well, that is
  // recorded, and it counts there. False: they are not.
  bool GoesBackToNodes(const CheckpointRecord& checkpoint, const std::string& why);

 private:
  bool IsLookedFor(const JobRecord& job) const;
  void SavedStartFailed(const JobRecord& job, int rank, const v1::TaskReport& report, const std::string& why);
  bool HasReadCopy(const JobRecord& job, int rank) const;
  JobMoved BackToWhatIsSaved(const JobRecord& job, const std::string& why) const;
  void FallBackBehindSave(const JobRecord& job, const std::string& why);
  void Pause(const JobRecord& job, int failures);
  const Refusals* CountRefusal(const JobRecord& job, int rank);
  const Retry& NoteTried(const JobRecord& job, int rank, bool outside);
  std::string RetryElsewhereOrLater(const JobRecord& job, int rank, bool outside);

  const ClusterState& state_;
  const Clock& clock_;
  const ClusterView& cluster_;
  Recorder& recorder_;
  // Of jobs that a node could not start, restore or thaw: the next attempt.
  std::map<JobId, Time> not_before_;
  // Of jobs that could not be started or restored, though nothing is known against them or their image.
  std::map<JobId, Retry> retries_;
};

}  // namespace siding
