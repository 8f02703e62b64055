#include "planner/options.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"

namespace siding {
namespace {

int64_t NodeMs(const JobView& job, Duration per_node) {
  return static_cast<int64_t>(job.nodes.size()) * std::max<int64_t>(0, per_node.count() / 1000);
}

// The reason why this job may not be a victim at all; "" if it may.
std::string Guarded(const Snapshot& snapshot, const Policy& policy, const JobView& job) {
  if (job.kind == JobKind::kOnDemand) return "is a deadline job itself";
  if (job.releasing_at) return "is leaving its nodes already";
  if (job.methods.empty()) {
    return job.methods_note.empty() ? "is not preemptible" : absl::StrCat("cannot leave: ", job.methods_note);
  }
  if (snapshot.now - job.running_since < policy.min_runtime) {
    return absl::StrCat("has run for ", FormatDuration(snapshot.now - job.running_since), ", less than the ",
                        FormatDuration(policy.min_runtime), " that the policy asks for");
  }
  const int most = std::min(policy.max_preemptions, job.max_preemptions.value_or(policy.max_preemptions));
  if (job.preemptions >= most)
    return absl::StrCat("has made way ", job.preemptions, " times, the most allowed");
  if (job.last_preempted && snapshot.now - *job.last_preempted < policy.cooldown) {
    return absl::StrCat("made way ", FormatDuration(snapshot.now - *job.last_preempted),
                        " ago and is left alone for ", FormatDuration(policy.cooldown));
  }
  return "";
}

class OptionMaker {
 public:
  explicit OptionMaker(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const NodeView& node : snapshot.nodes) nodes_[node.id] = &node;
  }

  std::vector<Option> For(const JobView& job) const {
    std::vector<Option> options;
    if (job.methods.Has(Method::kSuspend)) AddSuspend(options);
    if (job.methods.Has(Method::kCheckpoint)) {
      AddCheckpoint(job, Tier::kLocal, options);
      if (snapshot_.shared.bytes_per_second > 0) AddCheckpoint(job, Tier::kShared, options);
    }
    if (job.methods.Has(Method::kApp) && job.app_grace) {
      options.push_back(
          {Method::kApp, Tier::kShared, *job.app_grace, NodeMs(job, *job.app_grace), Bytes{0}, false, false});
    }
    if (job.methods.Has(Method::kKill)) {
      options.push_back({Method::kKill, Tier::kShared, job.kill_grace,
                         NodeMs(job, snapshot_.now - job.durable_at), Bytes{0}, false, false});
    }
    return options;
  }

 private:
  void AddSuspend(std::vector<Option>& options) const {
    // GPUs stay with a frozen job, so it frees nothing for anybody who needs them; and a freeze is a matter
    // of milliseconds.
    options.push_back({Method::kSuspend, Tier::kShared, Duration(0), 0, Bytes{0}, true, false});
  }

  void AddCheckpoint(const JobView& job, Tier tier, std::vector<Option>& options) const {
    Option option{Method::kCheckpoint, tier, Duration(0), 0, Bytes{0}, false, tier == Tier::kLocal};
    Duration restore{0};
    for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
      auto it = nodes_.find(job.nodes[rank]);
      if (it == nodes_.end()) return;
      const TierRates& rates = tier == Tier::kLocal ? it->second->local : it->second->shared;
      if (!rates.dump.known() || !rates.restore.known()) return;
      const Bytes size = job.memory[rank];
      if (tier == Tier::kLocal && size > it->second->local_disk_free) return;
      option.release = std::max(option.release, rates.dump.For(size));
      restore = std::max(restore, rates.restore.For(size));
      if (tier == Tier::kShared) option.shared_bytes += size;
    }
    option.loss_ms = NodeMs(job, option.release + restore);
    options.push_back(option);
  }

  const Snapshot& snapshot_;
  std::map<NodeId, const NodeView*> nodes_;
};

}  // namespace

std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Policy& policy) {
  const OptionMaker maker(snapshot);
  std::vector<Candidate> candidates;
  candidates.reserve(snapshot.jobs.size());
  for (const JobView& job : snapshot.jobs) {
    Candidate candidate;
    candidate.job = &job;
    candidate.why_not = Guarded(snapshot, policy, job);
    if (candidate.why_not.empty()) {
      candidate.options = maker.For(job);
      if (candidate.options.empty()) {
        candidate.why_not = absl::StrCat("no way to take it off has been measured yet",
                                         job.methods_note.empty() ? "" : "; ", job.methods_note);
      }
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace siding
