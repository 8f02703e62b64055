#include "controller/platform/kubernetes/objects/asks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

constexpr size_t kLongestGang = 63;  // as a label's value

absl::Status Wrong(absl::string_view key, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat(kPrefix, key, ": expected ", expected));
}

// Reads what one annotation says into an Ask; an error is what was expected, without its name.
using Reader = std::function<absl::Status(const std::string& text, const Pod& pod, Ask& ask)>;

absl::Status ReadMethods(const std::string& text, const Pod&, Ask& ask) {
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const absl::StatusOr<Method> method = ParseMethod(std::string(absl::StripAsciiWhitespace(name)));
    // No signal could be named by which its program saves itself.
    if (!method.ok() || *method == Method::kApp)
      return absl::InvalidArgumentError("suspend, checkpoint and kill, or some of them, with commas between");
    ask.methods.Add(*method);
  }
  return absl::OkStatus();
}

Reader Moment(std::optional<Time> Ask::*field) {
  return [field](const std::string& text, const Pod& pod, Ask& ask) -> absl::Status {
    const absl::StatusOr<Time> time = ParseTime(text, pod.created);
    if (!time.ok()) return absl::InvalidArgumentError("a time such as 2026-05-01T12:00:00Z or +60s");
    ask.*field = *time;
    return absl::OkStatus();
  };
}

Reader Length(Duration Ask::*field) {
  return [field](const std::string& text, const Pod&, Ask& ask) -> absl::Status {
    const absl::StatusOr<Duration> length = ParseDuration(text);
    if (!length.ok() || *length <= Duration(0))
      return absl::InvalidArgumentError("a duration such as 30s or 10m");
    ask.*field = *length;
    return absl::OkStatus();
  };
}

absl::Status ReadWhole(const std::string& text, int least, int most, int& value) {
  if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a whole number from ", least, " to ", most));
}

const std::map<absl::string_view, Reader>& Readers() {
  static const std::map<absl::string_view, Reader> kReaders = {
      {"preemptible", ReadMethods},
      {"checkpoint-interval", Length(&Ask::checkpoint_interval)},
      {"max-preemptions",
       [](const std::string& text, const Pod&, Ask& ask) {
         return ReadWhole(text, 0, 1'000'000, ask.max_preemptions.emplace());
       }},
      {"start-by", Moment(&Ask::start_by)},
      {"not-before", Moment(&Ask::not_before)},
      {"walltime", Length(&Ask::walltime)},
      {"notice", Length(&Ask::notice)},
      {"gang",
       [](const std::string& text, const Pod&, Ask& ask) -> absl::Status {
         if (text.empty() || text.size() > kLongestGang)
           return absl::InvalidArgumentError(absl::StrCat("a name of at most ", kLongestGang, " bytes"));
         ask.gang = text;
         return absl::OkStatus();
       }},
      {"gang-size", [](const std::string& text, const Pod&,
                       Ask& ask) { return ReadWhole(text, 1, kLargestGang, ask.gang_size); }},
  };
  return kReaders;
}

// What only batch work may ask, and what only a pod with a deadline may.
absl::Status CheckTogether(const Pod& pod, const Ask& ask) {
  const bool deadline = ask.start_by.has_value();
  if (deadline && !ask.methods.empty())
    return Wrong("preemptible", "nothing beside start-by: a pod with a deadline makes way for nobody");
  if (!deadline && ask.methods.empty()) return Wrong("preemptible", "it, or start-by, beside the others");
  for (const char* key : {"not-before", "walltime"}) {
    if (!deadline && pod.said.contains(key)) return Wrong(key, "nothing without start-by");
  }
  for (const char* key : {"checkpoint-interval", "max-preemptions", "notice"}) {
    if (deadline && pod.said.contains(key)) return Wrong(key, "nothing beside start-by");
  }
  if (ask.checkpoint_interval > Duration(0) && !ask.methods.Has(Method::kCheckpoint))
    return Wrong("checkpoint-interval", "checkpoint among the methods of preemptible");
  if (ask.not_before && *ask.not_before > *ask.start_by) return Wrong("not-before", "a time before start-by");
  if (ask.gang.empty() != !pod.said.contains("gang-size"))
    return Wrong("gang-size", "gang and gang-size together");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<Ask>> AskOf(const Pod& pod) {
  Ask ask;
  bool asks = false;
  for (const auto& [key, text] : pod.said) {
    if (IsOwnMark(key)) continue;
    asks = true;
    const auto reader = Readers().find(key);
    if (reader == Readers().end()) return Wrong(key, "a name that siding knows");
    if (const absl::Status read = reader->second(text, pod, ask); !read.ok())
      return Wrong(key, read.message());
  }
  if (!asks) return std::optional<Ask>();
  SIDING_RETURN_IF_ERROR(CheckTogether(pod, ask));
  return ask;
}

absl::Status CheckDeadline(const Pod& pod, bool let_go) {
  if (!WaitsForSiding(pod) && pod.node.empty() && !let_go)
    return Wrong("start-by", absl::StrCat("schedulerName: ", kScheduler, ", or the scheduling gate ", kGate,
                                          ": another scheduler would choose its node"));
  std::vector<std::string> not_planned = pod.placement.not_planned;
  for (const auto& [name, amount] : pod.requests.others) not_planned.push_back(name);
  if (not_planned.empty()) return absl::OkStatus();
  return Wrong("start-by", absl::StrCat("nothing that siding does not plan with, as is ",
                                        absl::StrJoin(not_planned, ", ")));
}

}  // namespace siding::kubernetes
