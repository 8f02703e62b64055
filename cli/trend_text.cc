#include "cli/trend_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace siding::cli {
namespace {

// "2026-05-01 12:00"; of a day without the hour.
std::string Begins(const v1::Trend& trend, bool by_hour) {
  const std::string at = FormatTime(FromMicros(trend.begins_us()));
  return by_hour ? absl::StrCat(at.substr(0, 10), " ", at.substr(11, 5)) : at.substr(0, 10);
}

std::string LostText(const v1::Trend& trend) {
  double all = 0;
  for (const v1::LostBy& lost : trend.lost()) all += lost.node_seconds();
  return trend.lost().empty() ? "-" : absl::StrFormat("%.1f", all);
}

std::string ByText(const v1::Trend& trend) {
  const auto part = [](std::string* out, const v1::LostBy& lost) {
    absl::StrAppend(out, lost.how(), " ", absl::StrFormat("%.1f", lost.node_seconds()));
  };
  return trend.lost().empty() ? "-" : absl::StrJoin(trend.lost(), ", ", part);
}

std::string RatioText(const v1::ReleaseTimes& releases, double ratio) {
  return releases.count() == 0 ? "-" : absl::StrFormat("%.2f", ratio);
}

std::string SpeedText(const v1::Trend& trend, v1::Tier tier) {
  const auto found = std::find_if(trend.writes().begin(), trend.writes().end(),
                                  [&](const v1::TierWrites& writes) { return writes.tier() == tier; });
  if (found == trend.writes().end() || found->seconds() <= 0) return "-";
  return FormatBytes(Bytes{static_cast<int64_t>(static_cast<double>(found->bytes()) / found->seconds())}) +
         "/s";
}

std::vector<std::string> Row(const std::string& name, const v1::Trend& trend) {
  return {name,
          absl::StrCat(trend.met()),
          absl::StrCat(trend.missed()),
          absl::StrCat(trend.refused()),
          absl::StrCat(trend.preemptions()),
          LostText(trend),
          RatioText(trend.releases(), trend.releases().median()),
          RatioText(trend.releases(), trend.releases().ninetieth()),
          SpeedText(trend, v1::LOCAL),
          SpeedText(trend, v1::SHARED),
          ByText(trend)};
}

}  // namespace

std::string TrendsTable(const v1::TrendsResponse& trends, bool by_hour, const Style& style) {
  const auto& rows = by_hour ? trends.hours() : trends.days();
  if (rows.empty()) return absl::StrCat("nothing has happened in the last ", by_hour ? "7" : "90", " days\n");
  std::vector<std::vector<std::string>> table = {{by_hour ? "HOUR (UTC)" : "DAY (UTC)", "MET", "MISSED",
                                                  "REFUSED", "PREEMPTED", "LOST NODE-S", "MEDIAN", "90 %",
                                                  "LOCAL", "SHARED", "LOST BY"}};
  for (const v1::Trend& trend : rows) table.push_back(Row(Begins(trend, by_hour), trend));
  table.push_back(Row("all", by_hour ? trends.week() : trends.quarter()));
  return absl::StrCat(Table(table, style),
                      "MEDIAN, 90 %: how long half, and nine tenths, of the orders that "
                      "free nodes took at most, as a multiple of what was predicted.\n"
                      "LOCAL, SHARED: how fast images were written into that tier.\n");
}

}  // namespace siding::cli
