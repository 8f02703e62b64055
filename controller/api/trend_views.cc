#include "controller/api/trend_views.h"

#include <algorithm>
#include <map>

#include "controller/wire/wire.h"

namespace siding {
namespace {

v1::Trend ShowTrend(Time begins, Time ends, const Trend& trend) {
  v1::Trend view;
  view.set_begins_us(ToMicros(begins));
  view.set_ends_us(ToMicros(ends));
  // What was counted in an earlier hour may turn out not to be so: a commit fails, a job is queued again.
  const auto at_least_none = [](int64_t times) { return std::max<int64_t>(0, times); };
  view.set_met(at_least_none(trend.met));
  view.set_missed(at_least_none(trend.missed));
  view.set_refused(at_least_none(trend.refused));
  view.set_preemptions(at_least_none(trend.preemptions));
  for (const auto& [by, node_ms] : trend.lost_node_ms) {
    v1::LostBy& lost = *view.add_lost();
    lost.set_how(ToString(by));
    lost.set_node_seconds(static_cast<double>(node_ms) / 1000);
  }
  v1::ReleaseTimes& releases = *view.mutable_releases();
  for (const auto& [step, times] : trend.releases) releases.set_count(releases.count() + times);
  releases.set_tenth(Quantile(trend.releases, 0.1));
  releases.set_median(Quantile(trend.releases, 0.5));
  releases.set_ninetieth(Quantile(trend.releases, 0.9));
  for (const auto& [tier, written] : trend.writes) {
    v1::TierWrites& writes = *view.add_writes();
    writes.set_tier(ToProto(tier));
    writes.set_images(written.images);
    writes.set_bytes(written.bytes.value);
    writes.set_seconds(ToSeconds(written.took));
  }
  return view;
}

// Returns them together.
v1::Trend ShowRows(const std::map<Time, Trend>& rows, Duration period,
                   google::protobuf::RepeatedPtrField<v1::Trend>& views) {
  Trend sum;
  for (const auto& [begins, trend] : rows) {
    *views.Add() = ShowTrend(begins, begins + period, trend);
    Add(sum, trend);
  }
  if (rows.empty()) return ShowTrend(Time(), Time(), sum);
  return ShowTrend(rows.begin()->first, rows.rbegin()->first + period, sum);
}

}  // namespace

v1::TrendsResponse ShowTrends(const Trends& trends) {
  v1::TrendsResponse response;
  *response.mutable_week() = ShowRows(trends.hours, kOneHour, *response.mutable_hours());
  *response.mutable_quarter() = ShowRows(trends.days, kOneDay, *response.mutable_days());
  return response;
}

}  // namespace siding
