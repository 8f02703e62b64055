#include "sim/report.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace siding::sim {
namespace {

using nlohmann::json;

constexpr int kWidth = 860, kLeft = 170, kRight = 90, kBar = 18, kGap = 7, kTitle = 46, kAxis = 24;

struct Plot {
  const char* title;
  const char* key;
  double factor;
  int digits;
};

constexpr Plot kPlots[] = {
    {"Deadlines met, % of on-demand jobs (more is better)", "deadline_hit_rate", 100, 1},
    {"Work done twice, node-hours (less is better)", "lost_node_hours", 1, 0},
    {"Work done twice after failures of nodes, node-hours (less is better)", "failure_node_hours", 1, 0},
    {"Nodes writing and reading images, node-hours (less is better)", "checkpoint_and_restore", 1, 0},
    {"Mean bounded slowdown of batch jobs (less is better)", "bounded_slowdown_mean", 1, 1},
    {"Preemptions (victims)", "preemptions", 1, 0},
    {"Useful utilisation, % of all node-hours (more is better)", "useful_utilisation", 100, 2},
};

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

double ValueOf(const json& strategy, const Plot& plot) {
  if (std::string(plot.key) == "checkpoint_and_restore") {
    return strategy.at("checkpoint_node_hours").get<double>() +
           strategy.at("restore_node_hours").get<double>();
  }
  return plot.factor * strategy.at(plot.key).get<double>();
}

// 1, 2 or 5 times a power of ten, not below.
double RoundUp(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (double step : {1.0, 2.0, 5.0, 10.0}) {
    if (value <= step * power) return step * power;
  }
  return 10 * power;
}

// Digits in threes: 1 494 638.
std::string WithSpaces(double value, int digits) {
  std::string text = absl::StrFormat("%.*f", digits, value);
  const auto point = text.find('.');
  for (int at = static_cast<int>(point == std::string::npos ? text.size() : point) - 3; at > 0; at -= 3)
    text.insert(at, 1, ' ');
  return text;
}

std::string Text(double x, double y, const std::string& anchor, const std::string& kind,
                 const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y,
                         anchor, kind, Escape(text));
}

std::string Axis(double top, double bottom, double most) {
  std::string svg;
  const double width = kWidth - kLeft - kRight;
  for (int tick = 0; tick <= 4; ++tick) {
    const double x = kLeft + width * tick / 4;
    absl::StrAppendFormat(&svg, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"grid\"/>\n", x,
                          top, x, bottom);
    svg += Text(x, bottom + 14, "middle", "tick", WithSpaces(most * tick / 4, 0));
  }
  return svg;
}

std::string Bars(const json& strategies, const Plot& plot, double& y) {
  std::string svg = Text(0, y + 28, "start", "title", plot.title);
  double most = 0;
  for (const json& s : strategies) most = std::max(most, ValueOf(s, plot));
  most = RoundUp(most);
  y += kTitle;
  const double bottom = y + static_cast<double>(strategies.size()) * (kBar + kGap);
  svg += Axis(y - 4, bottom, most);
  for (const json& s : strategies) {
    const double value = ValueOf(s, plot), width = (kWidth - kLeft - kRight) * value / most;
    const std::string name = s.at("name");
    svg += Text(kLeft - 8, y + kBar - 4, "end", "label", name);
    absl::StrAppendFormat(&svg, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>\n",
                          kLeft, y, width, kBar, name == "siding" ? "ours" : "bar");
    svg += Text(kLeft + width + 5, y + kBar - 4, "start", "value", WithSpaces(value, plot.digits));
    y += kBar + kGap;
  }
  y += kAxis;
  return svg;
}

std::string Rows(const json& object) {
  std::string rows;
  for (const auto& [key, value] : object.items()) {
    const std::string name = absl::StrReplaceAll(key, {{"_", " "}});
    absl::StrAppend(&rows, "<tr><td>", Escape(name), "</td><td>",
                    Escape(value.is_string()         ? value.get<std::string>()
                           : value.is_number_float() ? absl::StrFormat("%.6g", value.get<double>())
                                                     : value.dump()),
                    "</td></tr>\n");
  }
  return rows;
}

std::string StrategyTable(const json& strategies) {
  std::string table = "<table><tr><th>figure</th>";
  for (const json& s : strategies) absl::StrAppend(&table, "<th>", Escape(s.at("name")), "</th>");
  table += "</tr>\n";
  for (const auto& [key, value] : strategies.at(0).items()) {
    if (key == "name") continue;
    absl::StrAppend(&table, "<tr><td>", Escape(absl::StrReplaceAll(key, {{"_", " "}})), "</td>");
    for (const json& s : strategies)
      absl::StrAppend(&table, "<td>", absl::StrFormat("%.6g", s.at(key).get<double>()), "</td>");
    table += "</tr>\n";
  }
  return table + "</table>\n";
}

constexpr const char* kPage = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>siding: strategies compared</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.6em } h2 { font-size: 1.2em; margin-top: 2em }
table { border-collapse: collapse; font-size: 0.85em; display: block; overflow-x: auto }
th, td { text-align: right; padding: 0.2em 0.7em; border-bottom: 1px solid #ddd; white-space: nowrap }
td:first-child, th:first-child { text-align: left }
svg { max-width: 100%; height: auto }
</style></head><body>
)";

}  // namespace

std::string ReportSvg(const json& result) {
  const json& strategies = result.at("strategies");
  std::string body;
  double y = 0;
  for (const Plot& plot : kPlots) body += Bars(strategies, plot, y);
  return absl::StrFormat(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
             "height=\"%.0f\">\n"
             "<style>text { font: 13px sans-serif; fill: #222 } .title { font-weight: bold; font-size: 15px "
             "}\n"
             ".tick { fill: #666; font-size: 11px } .value { font-size: 12px } .grid { stroke: #ddd }\n"
             ".bar { fill: #9aa5b1 } .ours { fill: #c2410c }</style>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
             kWidth, y, kWidth, y) +
         body + "</svg>\n";
}

std::string ReportHtml(const json& result) {
  const json& drawn = result.at("drawn");
  return absl::StrCat(
      kPage, "<h1>What serving on-demand jobs costs the batch queue</h1>\n<p>The trace <code>",
      Escape(result.at("trace")), "</code> was replayed under each strategy: ", drawn.at("jobs").dump(),
      " jobs on ", drawn.at("nodes").dump(), " nodes, of which ", drawn.at("on_demand_jobs").dump(),
      " were taken to be on demand: they had to start by a deadline. Every strategy met the same jobs, "
      "deadlines, "
      "checkpoint sizes and failures.</p>\n",
      ReportSvg(result), "<h2>All figures</h2>\n", StrategyTable(result.at("strategies")),
      "<h2>What was assumed and drawn</h2>\n<p>A trace does not say which jobs were on demand, how large "
      "checkpoints are, "
      "or what fails. These figures were drawn, from one "
      "seed.</p>\n<table><tr><th>figure</th><th>value</th></tr>\n",
      Rows(drawn), "</table>\n</body></html>\n");
}

absl::Status WritePng(const std::string& svg, const std::string& path) {
  char name[] = "/tmp/siding-report-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0) return absl::UnavailableError("a temporary file cannot be made");
  close(fd);
  std::ofstream(name) << svg;
  const pid_t child = fork();
  if (child == 0) {
    execlp("rsvg-convert", "rsvg-convert", "-o", path.c_str(), name, nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  unlink(name);
  if (status == 0) return absl::OkStatus();
  return absl::FailedPreconditionError("--png: expected rsvg-convert to work (Debian: librsvg2-bin)");
}

}  // namespace siding::sim
