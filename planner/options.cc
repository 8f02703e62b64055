#include "planner/options.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "planner/explain.h"

namespace siding {
namespace {

int64_t Milliseconds(Duration d) { return std::max<int64_t>(0, d.count() / 1000); }

const JobClass* ClassOf(const Policy& policy, const JobView& job) {
  return job.job_class < 0 ? nullptr : &policy.classes[job.job_class];
}

PlanKeep Kept(const JobView& job, KeepRule rule, std::string note = "") {
  PlanKeep keep = KeepOf(job);
  keep.rule = rule;
  keep.note = std::move(note);
  return keep;
}

// `set`: the class has a value of its own for the key.
PlanKeep KeptBy(const JobView& job, KeepRule rule, const char* key, const JobClass* its, bool set,
                std::string note = "") {
  PlanKeep keep = Kept(job, rule, std::move(note));
  keep.policy_key = key;
  if (its != nullptr && set) keep.job_class = its->name;
  return keep;
}

// The reason why this job may not be a victim at all; unsaid if it may.
PlanKeep NeverAVictim(const Policy& policy, const JobView& job) {
  if (job.kind == JobKind::kOnDemand) {
    PlanKeep keep = Kept(job, KeepRule::kOnDemand);
    keep.from = job.ends_at.value_or(Time{});
    return keep;
  }
  if (job.releasing_at) return Kept(job, KeepRule::kLeaving);
  if (job.methods.empty()) {
    return job.methods_note.empty() ? Kept(job, KeepRule::kNotPreemptible)
                                    : Kept(job, KeepRule::kCannotLeave, job.methods_note);
  }
  const JobClass* const its = ClassOf(policy, job);
  if (its != nullptr && its->methods && its->methods->empty())
    return KeptBy(job, KeepRule::kProtected, "methods", its, true);
  const int of_policy =
      its != nullptr ? its->max_preemptions.value_or(policy.max_preemptions) : policy.max_preemptions;
  const int most = std::min(of_policy, job.max_preemptions.value_or(of_policy));
  if (job.preemptions < most) return {};
  const std::string times = absl::StrCat(job.preemptions);
  if (most < of_policy) return Kept(job, KeepRule::kMaxPreemptions, times);
  return KeptBy(job, KeepRule::kMaxPreemptions, "max_preemptions", its,
                its != nullptr && its->max_preemptions, times);
}

std::string WhyNoRoomOn(const NodeView& node, Tier tier, Bytes needed) {
  return tier == Tier::kLocal ? WhyNoRoom(tier, node.id, node.local_disk_free, needed, node.local_problem)
                              : WhyNoRoom(tier, node.id, node.shared_disk_free, needed, node.shared_problem);
}

Bytes ImageOf(const JobView& job) { return std::accumulate(job.memory.begin(), job.memory.end(), Bytes{0}); }

class OptionMaker {
 public:
  OptionMaker(const Snapshot& snapshot, const Request& request, const Policy& policy)
      : snapshot_(snapshot),
        policy_(policy),
        arrival_(ArrivalOf(snapshot, request)),
        wanted_(request.nodes),
        deviations_(DeviationsFor(policy.confidence, request.nodes)),
        hold_(request.hold > Duration(0) ? request.hold : policy.expected_hold) {
    for (const NodeView& node : snapshot.nodes) nodes_[node.id] = &node;
  }

  // Its job, and from when it counts, are known.
  void AddOptions(Candidate& candidate) const {
    const JobView& job = *candidate.job;
    const JobClass* const its = ClassOf(policy_, job);
    std::vector<Option>& options = candidate.options;
    const auto add = [&](Method method) {
      if (!job.methods.Has(method)) return;
      Time from = candidate.from;
      if (const auto back = job.methods_back_at.find(method); back != job.methods_back_at.end())
        from = std::max(from, back->second);
      if (method != Method::kKill) from = std::max(from, job.saved_by.value_or(from));
      Add(candidate, method, std::max(Duration(0), from - arrival_));
    };
    if (its != nullptr && its->methods) {
      std::for_each(its->methods->begin(), its->methods->end(), add);
    } else {
      std::for_each(std::begin(kAllMethods), std::end(kAllMethods), add);
    }
    for (Option& option : options) option.cost_ms = Cost(job, its, option);
    if (!job.timer.empty()) SpareTimers(options);
  }

 private:
  void Add(Candidate& candidate, Method method, Duration wait) const {
    const JobView& job = *candidate.job;
    std::vector<Option>& options = candidate.options;
    switch (method) {
      case Method::kSuspend:
        // The freeze itself is a matter of milliseconds.
        if (const auto drain = DrainOf(job); drain && FreezingFrees(job)) {
          options.push_back({.method = method,
                             .release = wait + job.notice + drain->release,
                             .wait = wait,
                             .before_writing = wait + job.notice,
                             .loss_ms = Loss(job, drain->away),
                             .stays_in_ram = true});
        }
        return;
      case Method::kCheckpoint:
        if (job.can_return_to_its_nodes) AddCheckpoint(candidate, Tier::kLocal, wait);
        if (snapshot_.shared.bytes_per_second > 0) AddCheckpoint(candidate, Tier::kShared, wait);
        return;
      case Method::kApp:
        if (!job.app_grace) return;
        options.push_back({.method = method,
                           .release = wait + *job.app_grace,
                           .wait = wait,
                           .loss_ms = Loss(job, *job.app_grace)});
        return;
      case Method::kKill: {
        // A job that has been restored is taken off its GPUs before it is ended.
        const auto drain = DrainOf(job);
        const Duration again = DoneAgain(job, arrival_ + wait);
        options.push_back({.method = method,
                           .release = wait + job.kill_grace + (drain ? drain->release : Duration(0)),
                           .wait = wait,
                           .loss_ms = Loss(job, again + job.way_back.value_or(Duration(0))),
                           .done_again = again});
        return;
      }
    }
  }

  // If it is ended then.
  static Duration DoneAgain(const JobView& job, Time at) {
    const Duration since = at - job.durable_at;
    return job.most_lost > Duration(0) ? std::min(since, job.most_lost) : since;
  }

  // All that it holds, but its memory.
  bool FreezingFrees(const JobView& job) const {
    const Capabilities& can = snapshot_.capabilities;
    return can.freezing_frees_slots && (can.freezing_frees_gpus || job.per_node.gpus == 0);
  }

  struct Drain {
    Duration release{0};  // at the quantile
    Duration away{0};     // off the GPUs and back, medians
  };
  // nullopt: its GPUs' speed is not known. Nothing for a job without GPUs.
  std::optional<Drain> DrainOf(const JobView& job) const {
    Drain drain;
    for (size_t rank = 0; rank < job.gpu_memory.size(); ++rank) {
      auto it = nodes_.find(job.nodes[rank]);
      if (it == nodes_.end()) return std::nullopt;
      const TierRates& rates = it->second->gpu;
      if (!rates.dump.known() || !rates.restore.known()) return std::nullopt;
      const Bytes bytes = job.gpu_memory[rank];
      drain.release = std::max(drain.release, rates.dump.For(bytes, deviations_));
      drain.away = std::max(drain.away, rates.dump.For(bytes) + rates.restore.For(bytes));
    }
    drain.release += job.gpu_lock;
    drain.away += job.gpu_lock;
    return drain;
  }

  void AddCheckpoint(Candidate& candidate, Tier tier, Duration wait) const {
    const JobView& job = *candidate.job;
    std::vector<Option>& options = candidate.options;
    Option option{.method = Method::kCheckpoint, .tier = tier, .to_local_disk = tier == Tier::kLocal};
    std::string no_room;
    Duration dump{0}, restore{0};
    const auto drain = DrainOf(job);
    if (!drain) return;
    for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
      auto it = nodes_.find(job.nodes[rank]);
      if (it == nodes_.end()) return;
      const TierRates& rates = tier == Tier::kLocal ? it->second->local : it->second->shared;
      if (!rates.dump.known() || !rates.restore.known()) return;
      const Bytes size = job.memory[rank];
      if (no_room.empty()) no_room = WhyNoRoomOn(*it->second, tier, size);
      // What leaves the GPUs has to be somewhere before it is on disk.
      if (!job.gpu_memory.empty() && size > it->second->ram_available) return;
      option.by_rank.push_back(rates.dump.For(size, deviations_));
      option.release = std::max(option.release, option.by_rank.back());
      dump = std::max(dump, rates.dump.For(size));
      restore = std::max(restore, rates.restore.For(size));
      if (tier == Tier::kShared) option.shared_bytes += size;
    }
    if (no_room.empty() && tier == Tier::kShared)
      no_room = WhyNoSharedRoom(snapshot_.shared.free, ImageOf(job));
    if (!no_room.empty()) {
      absl::StrAppend(&candidate.no_room, candidate.no_room.empty() ? "" : "; ", no_room);
      return;
    }
    dump += job.ranks_wait;
    option.release += drain->release + job.ranks_wait;
    const Duration away = drain->away + dump + restore;
    option.loss_ms = Loss(job, away);
    const Option at_once = option;
    option.wait = wait;
    option.before_writing = wait + job.notice;
    option.release += option.before_writing;
    if (!job.gpu_memory.empty() && FreezingFrees(job)) AddThroughRam(*drain, option, options);
    if (tier == Tier::kShared) {
      Option migration = option;
      migration.migrates = true;
      options.push_back(std::move(migration));
      const Duration stop = std::min(dump, job.checkpoint_stop.value_or(dump));
      AddEarly(job, at_once, wait, away - dump + stop, options);
    }
    options.push_back(std::move(option));
  }

  static void AddThroughRam(const Drain& drain, Option option, std::vector<Option>& options) {
    option.release = option.before_writing + drain.release;
    option.stays_in_ram = true;
    // No deadline waits for the writing.
    option.by_rank.clear();
    option.shared_bytes = Bytes{0};
    options.push_back(std::move(option));
  }

  // The image begins to be taken two dump times before the arrival, so that there is time for a second try.
  void AddEarly(const JobView& job, const Option& checkpoint, Duration wait, Duration stop_and_restore,
                std::vector<Option>& options) const {
    const Duration lead = arrival_ - snapshot_.now;
    if (checkpoint.release > lead) return;
    if (job.saved_by && *job.saved_by > arrival_ - 2 * checkpoint.release) return;
    // Its dumps fail until then, and when the image would begin is known only once all are chosen.
    const auto back = job.methods_back_at.find(Method::kCheckpoint);
    if (back != job.methods_back_at.end() && back->second > snapshot_.now) return;
    Option option = checkpoint;
    option.early = true;
    option.wait = wait;
    option.before_writing = wait + job.notice;
    option.release = option.before_writing + job.kill_grace;
    option.loss_ms = Loss(job, stop_and_restore + std::min(lead, 2 * checkpoint.release) + wait);
    options.push_back(std::move(option));
  }

  // Makes suspending the last resort if there are checkpoints. What it was to be preferred to, such as a
  // kill, it still is.
  static void SpareTimers(std::vector<Option>& options) {
    const auto suspends = [](const Option& option) { return option.method == Method::kSuspend; };
    const auto checkpoints = [](const Option& option) { return option.method == Method::kCheckpoint; };
    std::optional<int64_t> dearest_ms, suspend_ms;
    for (const Option& option : options) {
      if (checkpoints(option)) dearest_ms = std::max(dearest_ms.value_or(0), option.cost_ms);
      if (suspends(option)) suspend_ms = std::min(suspend_ms.value_or(option.cost_ms), option.cost_ms);
    }
    if (!dearest_ms || !suspend_ms) return;
    const int64_t last_ms = std::max(*suspend_ms, *dearest_ms + 1);
    for (Option& option : options) {
      if (suspends(option)) {
        option.cost_ms = std::max(option.cost_ms, last_ms);
        option.last_resort = true;
      } else if (!checkpoints(option) && option.cost_ms >= *suspend_ms) {
        option.cost_ms = std::max(option.cost_ms, last_ms + 1);
      }
    }
    std::stable_partition(std::find_if(options.begin(), options.end(), suspends), options.end(), checkpoints);
  }

  static int64_t Loss(const JobView& job, Duration per_node) {
    return static_cast<int64_t>(job.nodes.size()) * Milliseconds(per_node);
  }

  int64_t Cost(const JobView& job, const JobClass* its, const Option& option) const {
    const double loss_weight = its != nullptr ? its->loss_weight : 1;
    const double delay_weight =
        its != nullptr ? its->delay_weight.value_or(policy_.delay_weight) : policy_.delay_weight;
    const double held = static_cast<double>(Loss(job, hold_));
    const int idle = option.method == Method::kSuspend ? static_cast<int>(job.nodes.size()) - wanted_ : 0;
    const double kept_idle = std::max(0, idle) * static_cast<double>(Milliseconds(hold_));
    return std::llround(loss_weight * static_cast<double>(option.loss_ms) +
                        (option.migrates ? 0 : delay_weight) * held + policy_.unused_node_weight * held +
                        policy_.frozen_node_weight * kept_idle);
  }

  const Snapshot& snapshot_;
  const Policy& policy_;
  const Time arrival_;
  const int wanted_;  // nodes
  const double deviations_;
  const Duration hold_;
  std::unordered_map<NodeId, const NodeView*> nodes_;
};

}  // namespace

Bytes SharedRoomOf(const JobView& job, const Option& option) {
  return option.method == Method::kCheckpoint && option.tier == Tier::kShared ? ImageOf(job) : Bytes{0};
}

// Each guard ends; the one that ends last is the one that is named.
Protection ProtectionOf(const JobView& job, const Policy& policy, Time now) {
  if (PlanKeep never = NeverAVictim(policy, job); never.rule != KeepRule::kUnsaid)
    return {kForGood, KeptText(never), never};
  const JobClass* const its = ClassOf(policy, job);
  const Duration min_runtime =
      its != nullptr ? its->min_runtime.value_or(policy.min_runtime) : policy.min_runtime;
  const Duration cooldown = its != nullptr ? its->cooldown.value_or(policy.cooldown) : policy.cooldown;
  const Time settled = job.running_since + min_runtime;
  const Time cooled = job.last_preempted ? *job.last_preempted + cooldown : settled;
  const Time until = std::max(settled, cooled);
  if (until <= now) return {until, "", {}};
  const auto protect = [&](PlanKeep keep) {
    keep.from = until;
    return Protection{until, keep.note, keep};
  };
  if (settled >= cooled) {
    return protect(
        KeptBy(job, KeepRule::kMinRuntime, "min_runtime", its, its != nullptr && its->min_runtime,
               absl::StrCat("has run for ", FormatDuration(now - job.running_since), ", less than the ",
                            FormatDuration(min_runtime), " that the policy asks for")));
  }
  const Duration since = now - *job.last_preempted;
  return protect(KeptBy(
      job, KeepRule::kCooldown, "cooldown", its, its != nullptr && its->cooldown,
      absl::StrCat("made way ", since < std::chrono::seconds(1) ? "now" : FormatDuration(since) + " ago",
                   " and is left alone for ", FormatDuration(cooldown))));
}

Time ArrivalOf(const Snapshot& snapshot, const Request& request) {
  return std::max(snapshot.now, request.not_before);
}

double DeviationsFor(double confidence, int nodes) {
  const double late = -std::expm1(std::log(confidence) / std::max(1, nodes));  // 1 - confidence^(1/nodes)
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > late ? low : high) = middle;
  }
  return high;
}

Request CommonRequest(const std::vector<Request>& requests) {
  Request common = requests.front();
  for (const Request& request : requests) {
    common.nodes = std::max(common.nodes, request.nodes);
    common.hold = std::max(common.hold, request.hold);
  }
  return common;
}

void NoteNoOptions(Candidate& candidate) {
  const std::string& note = candidate.job->methods_note;
  std::string why = candidate.no_room;
  if (!note.empty()) absl::StrAppend(&why, why.empty() ? "" : "; ", note);
  candidate.keep = Kept(
      *candidate.job, candidate.no_room.empty() ? KeepRule::kNotMeasured : KeepRule::kNoRoom, std::move(why));
  candidate.why_not = KeptText(candidate.keep);
}

std::vector<Candidate> MakeCandidates(const Snapshot& snapshot, const Request& request,
                                      const Policy& policy) {
  const OptionMaker maker(snapshot, request, policy);
  std::vector<Candidate> candidates;
  candidates.reserve(snapshot.jobs.size());
  for (const JobView& job : snapshot.jobs) {
    Candidate candidate;
    candidate.job = &job;
    Protection protection = ProtectionOf(job, policy, snapshot.now);
    candidate.from = protection.until;
    candidate.keep = std::move(protection.keep);
    (protection.until == kForGood ? candidate.why_not : candidate.why_later) = std::move(protection.why);
    if (candidate.why_not.empty()) {
      maker.AddOptions(candidate);
      candidate.strict = job.job_class >= 0 && policy.classes[job.job_class].strict;
      if (candidate.options.empty()) NoteNoOptions(candidate);
    }
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace siding
