#include <algorithm>

#include "sim/simulation.h"

namespace siding::sim {

void Simulation::Reserve() {
  int most = 0;
  for (const Job& job : w_.jobs) most = job.on_demand ? most : std::max(most, job.trace.nodes);
  reserved_ = std::min(static_cast<int>(std::ceil(p_.on_demand_share * w_.nodes)), w_.nodes - most);
}

bool Simulation::Fits(int j) const {
  const int nodes = Spec(j).trace.nodes;
  if (machine_.free() < nodes) return false;
  if (now_ < jobs_[j].copied_at && !IsFreeOnDisks(j)) return false;
  return Spec(j).on_demand || batch_held_ + nodes <= w_.nodes - reserved_;
}

void Simulation::Schedule() {
  WakeFrozen();
  std::sort(returning_.begin(), returning_.end(), [&](int a, int b) {
    return std::pair(jobs_[a].away_since, a) < std::pair(jobs_[b].away_since, b);
  });
  if (late_.empty() && returning_.empty() && queue_.empty()) return;
  double shadow = kNever;  // when the first that does not fit can start
  int extra = 0;           // nodes that it leaves over then
  bool waits = false;
  for (std::vector<int>* list : {&late_, &returning_, &queue_}) {
    size_t kept = 0;
    for (size_t i = 0; i < list->size(); ++i) {
      const int j = (*list)[i];
      const int nodes = Spec(j).trace.nodes;
      bool start = machine_.free() > 0 && Fits(j);
      if (start && waits) {
        const bool in_time = now_ + Remaining(j) <= shadow;
        start = in_time || nodes <= extra;
        if (start && !in_time) extra -= nodes;
      }
      if (start) {
        Start(j, TakeNodes(j));
        continue;
      }
      (*list)[kept++] = j;
      if (!waits) {
        waits = true;
        std::tie(shadow, extra) = Reservation(nodes);
        shadow = std::max(shadow, jobs_[j].copied_at);
      }
    }
    list->resize(kept);
  }
}

void Simulation::WakeFrozen() {
  std::vector<int> order = frozen_;
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(jobs_[a].away_since, a) < std::pair(jobs_[b].away_since, b);
  });
  for (int j : order) {
    const auto idle = [&](int n) { return machine_.runner(n) == kNobody && machine_.kept_for(n) == kNobody; };
    if (!std::all_of(jobs_[j].nodes.begin(), jobs_[j].nodes.end(), idle)) {
      if (MovingIsSooner(j)) MoveAway(j);
      continue;
    }
    Thaw(j);
    for (int node : jobs_[j].nodes) machine_.Run(node, j);
    Log(j, LogEntry::What::kWake);
    ReturnedAt(j);
    Move(j, {JobEvent::kOrderResume});
    Compute(j, JobEvent::kThawed);
  }
}

bool Simulation::MovingIsSooner(int j) {
  if (machine_.free() - promised_ < Spec(j).trace.nodes ||
      strategy_.policy.strategy != siding::Strategy::kLeastLoss)
    return false;
  double until = now_;
  for (int node : jobs_[j].nodes) {
    const int runner = machine_.runner(node);
    if (runner != kNobody) until = std::max(until, jobs_[runner].since + Remaining(runner));
  }
  return now_ + DumpTime(j) + RestoreTime(j) < until;
}

void Simulation::MoveAway(int j) {
  promised_ += Spec(j).trace.nodes;
  jobs_[j].leaving = Method::kCheckpoint;
  ++jobs_[j].incarnation;
  frozen_.erase(std::find(frozen_.begin(), frozen_.end(), j));
  moving_.insert(j);
  Dump(j);
}

std::pair<double, int> Simulation::Reservation(int nodes) const {
  std::vector<std::pair<double, int>> ends;
  for (int j : holders_) {
    const SimJob& job = jobs_[j];
    const double since = job.state == JobState::kRunning ? job.since : now_;
    ends.emplace_back(std::max(now_, since + Remaining(j)), static_cast<int>(job.nodes.size()));
  }
  std::sort(ends.begin(), ends.end());
  int free = machine_.free();
  for (const auto& [end, count] : ends) {
    free += count;
    if (free >= nodes) return {end, free - nodes};
  }
  return {kNever, 0};
}

}  // namespace siding::sim
