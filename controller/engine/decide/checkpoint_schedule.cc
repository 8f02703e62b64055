#include "controller/engine/decide/checkpoint_schedule.h"

#include <algorithm>

#include "controller/engine/state/predicates.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

constexpr double kSecondsPerYear = 365.25 * 86400;
constexpr Duration kMeasureAgain = std::chrono::seconds(1);
// A checkpoint is ordered by a look that comes once a second, and may have to wait for others.
constexpr Duration kLate = std::chrono::seconds(5);
// After so many failures in a row, and to that interval, the next is put off no further.
constexpr int kMostDoublings = 12;
constexpr Duration kMostPutOff = std::chrono::hours(1);

bool SavesItselfAndRunsOn(const JobRecord& job) {
  return Can(job, Method::kApp) && ContinuesAfterSave(*job.spec.app);
}

}  // namespace

bool CheckpointSchedule::HasOne(const JobRecord& job) const {
  if (job.spec.checkpoint_interval > Duration(0) || job.spec.auto_checkpoint_interval)
    return Can(job, Method::kCheckpoint) || SavesItselfAndRunsOn(job);
  return Can(job, Method::kCheckpoint) && policy_.MostLostWork(job.spec) > Duration(0);
}

Tier CheckpointSchedule::TierOf(const JobRecord& job) const {
  const bool local = policy_.checkpoint_tier == Tier::kLocal && manager_.WhyNotLocal(job).empty();
  return local ? Tier::kLocal : Tier::kShared;
}

bool CheckpointSchedule::ByImage(const JobRecord& job) const {
  return Can(job, Method::kCheckpoint) && !cluster_.CannotBeCheckpointed(job);
}

std::optional<CheckpointSchedule::Schedule> CheckpointSchedule::Of(const JobRecord& job) const {
  if (!HasOne(job)) return std::nullopt;
  const bool by_image = ByImage(job);
  if (!by_image && !SavesItselfAndRunsOn(job)) return std::nullopt;
  Schedule schedule{.every = {job.spec.checkpoint_interval}};
  IntervalTerms terms;
  if (const auto cost = CostOf(job)) {
    terms.cost = schedule.cost = *cost;
    if (by_image) terms.most_lost = policy_.MostLostWork(job.spec);
    if (job.spec.auto_checkpoint_interval && policy_.node_failures_per_year > 0)
      terms.mean_time_to_failure =
          FromSeconds(kSecondsPerYear / policy_.node_failures_per_year / job.spec.nodes);
    // The first one may cost what it likes: those behind it are cheaper, or it is learned that they are not.
    if (terms.most_lost > Duration(0) && !job.checkpoint_costs.empty()) {
      terms.most_stopped = policy_.checkpoint_stops;
      terms.bytes_per_second = BandwidthFor(job, TierOf(job));
    }
    const ChosenInterval chosen = ChooseInterval(terms);
    const Duration own = job.spec.checkpoint_interval;
    if (chosen.interval > Duration(0) && (own == Duration(0) || chosen.interval < own)) {
      schedule.every = chosen;
      schedule.at_most = LongestInterval(terms);
      if (own > Duration(0)) schedule.at_most = std::min(schedule.at_most, own);
    }
  }
  if (schedule.every.interval == Duration(0)) return std::nullopt;
  // What fails stops the job for nothing.
  const Duration interval = schedule.every.interval;
  const Duration put_off =
      std::min(interval, kMostPutOff) * (1 << std::min(job.checkpoint_failures, kMostDoublings));
  if (std::min(put_off, kMostPutOff) > interval)
    schedule.every = {std::min(put_off, kMostPutOff), ChosenInterval::Bound::kFailures};
  schedule.at_most = std::max(schedule.at_most, schedule.every.interval);
  return schedule;
}

Duration CheckpointSchedule::MostLost(const JobRecord& job) const {
  // Before the first image, and of one that has not worked, nothing is promised.
  if (job.checkpoint_costs.empty() || !ByImage(job)) return Duration(0);
  const std::optional<Schedule> schedule = Of(job);
  if (!schedule) return Duration(0);
  // Until the first of two images counts, and the second is due; none is begun shortly before a plan ends it.
  const Duration most = schedule->at_most + 3 * schedule->cost.longest + kLate + late_;
  return clock_.Now() - job.durable_at > most ? Duration(0) : most;
}

Bytes CheckpointSchedule::BytesOfNext(const JobRecord& job, Tier tier) const {
  const auto learned = Expected(job.checkpoint_costs, tier);
  return learned ? learned->written : cluster_.ImageOf(job);
}

Duration CheckpointSchedule::CopyInterval(const JobRecord& job, const CheckpointRecord& image,
                                          const CheckpointRecord& base) const {
  const double bandwidth = BandwidthFor(job, Tier::kShared);
  const std::optional<Schedule> schedule = Of(job);
  if (bandwidth <= 0 || !schedule) return Duration(0);
  // All that the images since then have written. Some of it is of no use to the last one any more.
  const auto learned = Expected(job.checkpoint_costs, image.tier);
  const Bytes each = learned ? learned->written : image.new_bytes;
  const double images =
      std::max(1.0, ToSeconds(image.created - base.created) / ToSeconds(schedule->every.interval));
  const auto all = static_cast<double>(image.bytes.value);
  const double bytes = image.SharesBytes() ? std::min(all, static_cast<double>(each.value) * images) : all;
  return FromSeconds(bytes / bandwidth);
}

std::optional<ExpectedCost> CheckpointSchedule::CostOf(const JobRecord& job) const {
  if (!ByImage(job)) {
    const Duration grace = job.spec.app->grace;
    return ExpectedCost{.stop = grace, .takes = grace, .longest = grace};
  }
  const Tier tier = TierOf(job);
  if (const auto learned = Expected(job.checkpoint_costs, tier)) return learned;
  const Duration takes = cluster_.TimeToDump(job, tier);
  if (takes == Duration(0)) return std::nullopt;
  const Bytes image = cluster_.ImageOf(job);
  return ExpectedCost{.stop = takes,
                      .written = image,
                      .takes = takes,
                      .longest = takes,
                      .stop_due = takes,
                      .written_due = image};
}

double CheckpointSchedule::BandwidthFor(const JobRecord& job, Tier tier) const {
  const double nodes = std::max<double>(1, static_cast<double>(state_.observed_nodes.size()));
  const double share = TierBandwidth() / nodes;
  double sum = 0;
  for (const int rank : cluster_.LiveRanks(job)) {
    const auto observed = state_.observed_nodes.find(job.nodes[rank]);
    if (observed == state_.observed_nodes.end()) continue;
    const v1::Heartbeat& said = observed->second.heartbeat;
    const double own = FromProto(tier == Tier::kLocal ? said.local() : said.shared()).dump.bytes_per_second;
    sum += (tier == Tier::kLocal ? own : std::min(own, share)) *
           PartOfItsNode(job, observed->first, observed->second);
  }
  return policy_.checkpoint_bandwidth * sum;
}

double CheckpointSchedule::PartOfItsNode(const JobRecord& job, const NodeId& node,
                                         const ObservedNode& observed) const {
  const Resources all = cluster_.CapacityOf(node, observed), its = job.spec.per_node;
  const auto share = [](auto part, auto whole) {
    return whole <= 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const double most = std::max({share(std::max(1, its.slots), all.slots),
                                share(its.memory.value, all.memory.value), share(its.gpus, all.gpus)});
  return most <= 0 ? 1 : std::min(1.0, most);
}

double CheckpointSchedule::TierBandwidth() const {
  if (const double said = policy_.SharedBandwidth(0); said > 0) return said;
  const Time now = clock_.Now();
  if (measured_ > 0 && now - measured_at_ < kMeasureAgain) return measured_;
  measured_at_ = now;
  measured_ = 0;
  for (const auto& [id, observed] : state_.observed_nodes)
    measured_ = std::max(measured_, FromProto(observed.heartbeat.shared()).dump.bytes_per_second);
  return measured_;
}

}  // namespace siding
