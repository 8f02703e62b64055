// Jobs whose newest image is on the disks of the nodes that they had.
#include <algorithm>

#include "sim/simulation.h"

namespace siding::sim {

void Simulation::LeaveForNow(int j) {
  if (IsOnDisksOnly(j)) jobs_[j].disks = jobs_[j].nodes;
  Leave(j);
  if (!jobs_[j].disks.empty()) CopyFromDisks(j);
}

void Simulation::CopyFromDisks(int j) {
  SimJob& job = jobs_[j];
  job.copied_at = now_ + job.uncopied / SharedPart(p_, Spec(j), w_.nodes);
  // By the policy nothing may be copied.
  if (job.copied_at < kNever) events_.push({job.copied_at, SimEvent::Kind::kCopied, j, job.incarnation});
}

void Simulation::Copied(int j) {
  SimJob& job = jobs_[j];
  out_.jobs[j].bytes_copied += job.uncopied;
  job.safe = job.newest;
}

void Simulation::LoseDisk(int node) {
  for (const std::vector<int>* list : {&late_, &returning_}) {
    for (int j : *list) {
      SimJob& job = jobs_[j];
      if (std::find(job.disks.begin(), job.disks.end(), node) == job.disks.end()) continue;
      job.disks.clear();
      if (!IsOnDisksOnly(j)) continue;
      job.newest = job.safe;
      job.copied_at = 0;
      ++job.incarnation;  // the copy does not come about
      out_.jobs[j].redone_failures += FallBack(j);
      Move(j, {After(j) == JobState::kParked ? JobEvent::kRestoreFailed : JobEvent::kRestartNeeded});
    }
  }
}

bool Simulation::IsFreeOnDisks(int j) const {
  const std::vector<int>& disks = jobs_[j].disks;
  return !disks.empty() &&
         std::all_of(disks.begin(), disks.end(), [&](int node) { return machine_.is_free(node); });
}

std::vector<int> Simulation::TakeNodes(int j) {
  if (!IsFreeOnDisks(j)) return machine_.Take(Spec(j).trace.nodes, j);
  for (int node : jobs_[j].disks) machine_.Run(node, j);
  return jobs_[j].disks;
}

}  // namespace siding::sim
