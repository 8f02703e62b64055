// What sidingctl prints for people. Pure functions of messages: `now` is passed in, colours are asked for.
#pragma once

#include <string>
#include <vector>

#include "common/units.h"
#include "siding/v1/api.pb.h"

namespace siding::cli {

struct Style {
  bool color = false;
  Time now;
};

// Columns padded to their widest cell; the first row is the heading. Lines end with a newline.
std::string Table(const std::vector<std::vector<std::string>>& rows, const Style& style);

// Long names are cut unless they are asked for whole.
std::string JobsTable(const v1::ListJobsResponse& jobs, const Style& style, bool whole_names = false);
// What the job runs, or ran, as it could be typed into a shell, on one line. What is too long is cut. Empty:
// it is not known.
std::string CommandText(const v1::JobSpec& spec);
// A line for each job whose command is known.
std::string CommandLines(const v1::ListJobsResponse& jobs);
// Which timer a suspension of it does not stop; empty: none is known.
std::string TimerText(const v1::Job& job);
// When it has nodes again, or why nobody knows. Empty: it has some, or all that is known stands in
// `waits_for`.
std::string BackText(const v1::Job& job, const Style& style);
// Of a request that waits: when its nodes should be free, and how many of those that make way have. Empty:
// that is not known.
std::string PlanSummaryText(const v1::Job& job, const Style& style);
// What is said beside its state.
std::string WhyText(const v1::Job& job);
// Done, failed or cancelled.
bool HasEnded(const v1::Job& job);
// Why it is not where an order was to bring it. Never empty.
std::string WhyNotText(const v1::Job& job);
std::string NodesTable(const v1::ListNodesResponse& nodes, const Style& style);
std::string CheckpointsTable(const v1::ListCheckpointsResponse& checkpoints, const Style& style);
std::string CheckpointText(const v1::CheckpointInfo& checkpoint, const Style& style);
// `all`: each job that is left alone, not only how many for each reason.
std::string PlanText(const v1::Plan& plan, const Style& style, bool all = false);
std::string ExplainText(const v1::ExplainResponse& explanation, const Style& style, bool all = false);
std::string EventLine(const v1::Event& event);
// "dump 1.2 GiB of 4.0 GiB, 812 MiB/s, 3.4s left"
// What of a text fits on a screen: lines are cut at its edge, and the last one says how many there are below.
std::string FitTo(const std::string& text, int rows, int columns);

std::string ProgressText(const v1::JobProgress& progress);

std::string MethodName(v1::Method method);
std::string TierName(v1::Tier tier);
// "3m00s ago"; "now" for less than a second, and for what clocks that differ put into the future.
std::string Ago(Duration since);
// "in 42.0s", "3m00s ago", "now", "-" for 0.
std::string Relative(int64_t at_us, Time now);

}  // namespace siding::cli
