#include "planner/options.h"

#include <algorithm>
#include <unordered_map>

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
    return job.methods_note.empty() ? "not preemptible" : absl::StrCat("not preemptible: ", job.methods_note);
  }
  if (const Duration ran = snapshot.now - job.running_since; ran < policy.min_runtime) {
    return absl::StrCat("ran for ", FormatDuration(ran), ", less than the ", FormatDuration(policy.min_runtime),
                        " the policy asks");
  }
  const int most = std::min(policy.max_preemptions, job.max_preemptions.value_or(policy.max_preemptions));
  if (job.preemptions >= most) {
    return absl::StrCat("made way ", job.preemptions, job.preemptions == 1 ? " time" : " times", ", ", most,
                        " is the most allowed");
  }
  if (job.last_preempted && snapshot.now - *job.last_preempted < policy.cooldown) {
    return absl::StrCat("made way ", FormatDuration(snapshot.now - *job.last_preempted),
                        " ago, the policy leaves it alone for ", FormatDuration(policy.cooldown));
  }
  return "";
}

// Collects the options of one job, and why there are not more.
class OptionMaker {
 public:
  OptionMaker(const Snapshot& snapshot, Candidate& candidate)
      : snapshot_(snapshot), candidate_(candidate), job_(*candidate.job) {}

  void Make() {
    if (!job_.methods_note.empty()) Note(job_.methods_note);
    if (job_.methods.Has(Method::kSuspend)) AddSuspend();
    if (job_.methods.Has(Method::kCheckpoint)) {
      AddCheckpoint(Tier::kLocal);
      AddCheckpoint(Tier::kShared);
    }
    if (job_.methods.Has(Method::kApp)) AddApp();
    if (job_.methods.Has(Method::kKill)) {
      candidate_.options.push_back(
          {Method::kKill, Tier::kShared, job_.kill_grace, NodeMs(job_, snapshot_.now - job_.durable_at), Bytes{0}});
    }
  }

 private:
  void Note(const std::string& text) {
    absl::StrAppend(&candidate_.note, candidate_.note.empty() ? "" : "; ", text);
  }

  // Suspends and dumps are predicted from the size of every rank, on nodes that are known.
  bool Known(const char* what) {
    const bool known = job_.memory.size() == job_.nodes.size() &&
                       std::find(candidate_.nodes.begin(), candidate_.nodes.end(), -1) == candidate_.nodes.end();
    if (!known) Note(absl::StrCat(what, ": its size or nodes are not known yet"));
    return known;
  }

  // What all that freezes on a node takes of its RAM together is looked at in Board.
  void AddSuspend() {
    if (Known("suspend")) candidate_.options.push_back({Method::kSuspend, Tier::kShared, Duration(0), 0, Bytes{0}});
  }

  void AddApp() {
    if (!job_.app_grace) return Note("app: no time to save is given");
    candidate_.options.push_back(
        {Method::kApp, Tier::kShared, *job_.app_grace, NodeMs(job_, *job_.app_grace), Bytes{0}});
  }

  void AddCheckpoint(Tier tier) {
    const std::string what = absl::StrCat("checkpoint, ", ToString(tier));
    if (tier == Tier::kShared && snapshot_.shared.bytes_per_second <= 0) return;
    if (!Known(what.c_str())) return;
    Option option{Method::kCheckpoint, tier, Duration(0), 0, Bytes{0}};
    Duration restore{0};
    for (size_t rank = 0; rank < job_.nodes.size(); ++rank) {
      const NodeView& node = snapshot_.nodes[candidate_.nodes[rank]];
      const TierRates& rates = tier == Tier::kLocal ? node.local : node.shared;
      if (!rates.dump.known() || !rates.restore.known()) {
        return Note(absl::StrCat(what, ": not measured on ", node.id.value()));
      }
      const Bytes size = job_.memory[rank];
      if (tier == Tier::kLocal && size > node.local_disk_free) {
        return Note(absl::StrCat(what, ": ", FormatBytes(size), " do not fit on the disk of ", node.id.value()));
      }
      option.release = std::max(option.release, rates.dump.For(size));
      restore = std::max(restore, rates.restore.For(size));
      if (tier == Tier::kShared) option.shared_bytes += size;
    }
    option.loss_ms = NodeMs(job_, option.release + restore);
    candidate_.options.push_back(option);
  }

  const Snapshot& snapshot_;
  Candidate& candidate_;
  const JobView& job_;
};

}  // namespace

std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Policy& policy) {
  std::unordered_map<NodeId, int> index;
  for (size_t i = 0; i < snapshot.nodes.size(); ++i) index.emplace(snapshot.nodes[i].id, static_cast<int>(i));
  std::vector<Candidate> candidates;
  candidates.reserve(snapshot.jobs.size());
  for (const JobView& job : snapshot.jobs) {
    Candidate& candidate = candidates.emplace_back();
    candidate.job = &job;
    for (const NodeId& node : job.nodes) {
      const auto it = index.find(node);
      candidate.nodes.push_back(it == index.end() ? -1 : it->second);
    }
    candidate.why_not = Guarded(snapshot, policy, job);
    if (!candidate.why_not.empty()) continue;
    OptionMaker(snapshot, candidate).Make();
    if (candidate.options.empty()) {
      candidate.why_not = candidate.note.empty() ? "cannot be taken off" : absl::StrCat("cannot be taken off: ", candidate.note);
    }
  }
  return candidates;
}

}  // namespace siding
