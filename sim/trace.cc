#include "sim/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding::sim {
namespace {

constexpr double kAge = 10 * 365 * 86400.0;  // seconds in which no machine is the same

std::optional<double> NumberOf(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

// More than any machine has is as good as that.
int CountOf(double number) {
  constexpr double kMost = 1e9;
  return number >= 0 ? static_cast<int>(std::min(number, kMost)) : -1;
}

std::vector<std::string> Split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; separator == ' ' ? bool(in >> field) : bool(std::getline(in, field, separator));)
    fields.push_back(field);
  return fields;
}

// What is wrong with the job; "" if nothing.
std::string Problem(const TraceJob& job) {
  if (!(job.runtime > 0)) return absl::StrCat("runtime: expected more than 0, got ", job.runtime);
  if (job.runtime > kAge) return absl::StrCat("runtime: expected ten years at most, got ", job.runtime);
  if (job.nodes < 1) return absl::StrCat("nodes: expected 1 or more, got ", job.nodes);
  return "";
}

void Keep(Trace& trace, int line, const TraceJob& job) {
  const std::string problem = Problem(job);
  if (problem.empty()) {
    trace.jobs.push_back(job);
  } else {
    trace.skipped.push_back(absl::StrCat("line ", line, ": ", problem));
  }
}

// A job that was submitted in another age, before or after all others: its time is a slip of the pen, and the
// replay would go through all the years between. `jobs` are sorted.
void LeaveOutStrays(Trace& trace) {
  std::vector<TraceJob>& jobs = trace.jobs;
  size_t from = 0, size = 0;  // of the longest run without such a gap
  for (size_t begin = 0, end = 0; begin < jobs.size(); begin = end) {
    for (end = begin + 1; end < jobs.size() && jobs[end].submit - jobs[end - 1].submit <= kAge;) ++end;
    if (end - begin <= size) continue;
    from = begin;
    size = end - begin;
  }
  if (size == jobs.size()) return;
  trace.skipped.push_back(absl::StrCat(jobs.size() - size,
                                       jobs.size() - size == 1 ? " job was" : " jobs were",
                                       " submitted ten years or more before or after all others"));
  jobs = std::vector<TraceJob>(jobs.begin() + static_cast<ptrdiff_t>(from),
                               jobs.begin() + static_cast<ptrdiff_t>(from + size));
}

// Sorted, and counted from the first.
absl::StatusOr<Trace> Finished(Trace trace) {
  if (trace.jobs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(trace.name, ": there is no job in it",
                                                   trace.skipped.empty() ? "" : "; ",
                                                   trace.skipped.empty() ? "" : trace.skipped.front()));
  }
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.submit < b.submit; });
  LeaveOutStrays(trace);
  const double first = trace.jobs.front().submit;
  for (TraceJob& job : trace.jobs) {
    job.submit -= first;
    job.requested = std::max(job.requested, job.runtime);
  }
  return trace;
}

// 1-based, as the format numbers them; -1 or missing: not known.
double Field(const std::vector<std::optional<double>>& values, size_t field) {
  return field <= values.size() ? values[field - 1].value_or(-1) : -1;
}

void ReadSwfHeader(const std::string& line, Trace& trace) {
  for (const char* key : {"MaxNodes:", "MaxProcs:"}) {
    const auto at = line.find(key);
    if (at != std::string::npos)
      trace.nodes = std::max(trace.nodes, CountOf(std::strtod(line.c_str() + at + 9, nullptr)));
  }
}

std::optional<double> SecondsOf(const std::string& timestamp) {
  std::tm time{};
  if (strptime(timestamp.c_str(), "%Y-%m-%d %H:%M:%S", &time) == nullptr) return std::nullopt;
  return static_cast<double>(timegm(&time));
}

}  // namespace

absl::StatusOr<Trace> ReadSwf(std::istream& in, const std::string& name) {
  Trace trace;
  trace.name = name;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const auto first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    if (line[first] == ';') {
      ReadSwfHeader(line, trace);
      continue;
    }
    std::vector<std::optional<double>> values;
    bool broken = false;
    for (const std::string& field : Split(line, ' ')) {
      values.push_back(NumberOf(field));
      broken |= !values.back();
    }
    if (broken || values.size() < 5) {
      trace.skipped.push_back(
          absl::StrCat("line ", number, ": expected 18 numbers, got '", line.substr(0, 60), "'"));
      continue;
    }
    const double asked = Field(values, 8);
    Keep(trace, number,
         {Field(values, 2), Field(values, 4), Field(values, 9),
          CountOf(asked > 0 ? asked : Field(values, 5))});
  }
  return Finished(std::move(trace));
}

absl::StatusOr<Trace> ReadPhilly(std::istream& in, const std::string& name) {
  Trace trace;
  trace.name = name;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    if (++number == 1) continue;  // the header
    const std::vector<std::string> fields = Split(line, ',');
    const auto submit = fields.size() >= 3 ? SecondsOf(fields[0]) : std::nullopt;
    const auto duration = fields.size() >= 3 ? NumberOf(fields[1]) : std::nullopt;
    const auto gpus = fields.size() >= 3 ? NumberOf(fields[2]) : std::nullopt;
    if (!submit || !duration || !gpus) {
      trace.skipped.push_back(absl::StrCat("line ", number,
                                           ": expected a timestamp, a duration and a number of GPUs, got '",
                                           line.substr(0, 60), "'"));
      continue;
    }
    Keep(trace, number, {*submit, *duration, 2 * *duration, CountOf(*gpus)});
  }
  return Finished(std::move(trace));
}

absl::StatusOr<Trace> ReadTrace(const std::string& path, bool strict) {
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  const bool csv = path.size() > 4 && path.substr(path.size() - 4) == ".csv";
  SIDING_ASSIGN_OR_RETURN(Trace trace, csv ? ReadPhilly(in, path) : ReadSwf(in, path));
  if (strict && !trace.skipped.empty())
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", trace.skipped.front()));
  return trace;
}

}  // namespace siding::sim
