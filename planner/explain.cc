#include "planner/explain.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace siding {
namespace {

std::string NodeSeconds(int64_t ms) {
  return absl::StrFormat("%.1f node-seconds", static_cast<double>(ms) / 1000);
}

std::string Way(const Option& option) {
  if (option.early) return "checkpoint it in advance";
  if (option.migrates) return "migrate";
  if (option.method == Method::kCheckpoint && option.stays_in_ram) return "checkpoint it through RAM";
  return ToString(option.method);
}

// What its timers have to do with the way it leaves; "" if nothing.
std::string AboutTimers(const Candidate& candidate, const Option& chosen) {
  const std::string& timer = candidate.job->timer;
  if (timer.empty()) return "";
  if (chosen.method == Method::kSuspend) return absl::StrCat("; ", timer, ", which runs on meanwhile");
  if (chosen.method != Method::kCheckpoint) return "";
  if (chosen.stays_in_ram) return absl::StrCat("; ", timer, ", which runs on until the dump");
  const bool instead = std::any_of(candidate.options.begin(), candidate.options.end(),
                                   [](const Option& option) { return option.last_resort; });
  return instead ? absl::StrCat("; not suspended: ", timer, ", which would run on") : "";
}

// The method has failed, and is left alone for longer than the job.
bool WaitsForMethod(const Candidate& candidate, const Option& option) {
  const auto back = candidate.job->methods_back_at.find(option.method);
  return back != candidate.job->methods_back_at.end() && back->second > candidate.from;
}

// Until its image is made it can leave in no such way.
bool WaitsForImage(const Candidate& candidate, const Option& option) {
  const std::optional<Time>& by = candidate.job->saved_by;
  return by && option.method != Method::kKill && *by > candidate.from && option.wait > Duration(0);
}
constexpr const char* kBeingSavedText = "a checkpoint of it is being made";

std::string AgainAt(const Candidate& candidate, const Option& option) {
  return absl::StrCat(ToString(option.method), " is tried again at ",
                      FormatTime(candidate.job->methods_back_at.at(option.method)));
}

double LossOf(const Option& option) { return static_cast<double>(option.loss_ms) / 1000; }

PlanKeep WithText(PlanKeep keep) {
  keep.reason = KeptText(keep);
  return keep;
}

// From what a job goes on that is ended; "" if from its beginning.
std::string AboutImage(const JobView& job, const Option& chosen) {
  if (chosen.method != Method::kKill || !job.way_back) return "";
  return absl::StrCat(": its image is restored in ", FormatDuration(*job.way_back), ", and ",
                      FormatDuration(chosen.done_again), " of work is done again");
}

// Where its image has no room; "" if it could go to the shared tier, or need not be written.
std::string AboutRoom(const Candidate& candidate, const Option& chosen) {
  const bool has_room =
      std::any_of(candidate.options.begin(), candidate.options.end(), [](const Option& option) {
        return option.method == Method::kCheckpoint && option.tier == Tier::kShared;
      });
  if (candidate.no_room.empty() || has_room || chosen.method == Method::kSuspend) return "";
  return "; " + candidate.no_room;
}

}  // namespace

std::string CountNodes(size_t n) { return absl::StrCat(n, n == 1 ? " node" : " nodes"); }

std::string WhyChosen(const Candidate& candidate, const Option& chosen) {
  std::string text = absl::StrCat("frees ", CountNodes(candidate.job->nodes.size()), " in ",
                                  FormatDuration(chosen.release - chosen.wait), " for ",
                                  NodeSeconds(chosen.loss_ms), AboutImage(*candidate.job, chosen));
  if (WaitsForMethod(candidate, chosen))
    absl::StrAppend(&text, "; ", AgainAt(candidate, chosen));
  else if (WaitsForImage(candidate, chosen))
    absl::StrAppend(&text, ", not before ", FormatTime(*candidate.job->saved_by), " as ", kBeingSavedText);
  else if (chosen.wait > Duration(0))
    absl::StrAppend(&text, ", not before ", FormatTime(candidate.from), " as it ", candidate.why_later);
  const Option* dearest = nullptr;
  for (const Option& other : candidate.options) {
    if (other.method != chosen.method && other.loss_ms > chosen.loss_ms &&
        (dearest == nullptr || other.loss_ms > dearest->loss_ms))
      dearest = &other;
  }
  if (dearest != nullptr)
    absl::StrAppend(&text, "; to ", Way(*dearest), " it would cost ", NodeSeconds(dearest->loss_ms));
  return absl::StrCat(text, AboutRoom(candidate, chosen), AboutTimers(candidate, chosen));
}

std::string KeptText(const PlanKeep& keep) {
  const std::string note = keep.note.empty() ? "" : absl::StrCat("; ", keep.note);
  const auto takes = [&] { return absl::StrCat(FormatDuration(keep.release)); };
  switch (keep.rule) {
    case KeepRule::kUnsaid:
      return keep.reason;
    case KeepRule::kOnDemand:
      return absl::StrCat("is a deadline job itself, ", keep.from == Time{}
                                                            ? "and does not say when it will have ended"
                                                            : absl::StrCat("until ", FormatTime(keep.from)));
    case KeepRule::kLeaving:
      return "is leaving its nodes already";
    case KeepRule::kNotPreemptible:
      return "is not preemptible";
    case KeepRule::kCannotLeave:
      return absl::StrCat("cannot leave: ", keep.note);
    case KeepRule::kProtected:
      return absl::StrCat("is protected by the policy (class ", keep.job_class, ")");
    case KeepRule::kMaxPreemptions:
      return absl::StrCat("has made way ", keep.note, " times, the most allowed");
    case KeepRule::kMinRuntime:
    case KeepRule::kCooldown:
    case KeepRule::kBeingSaved:
      return absl::StrCat(keep.note, ", until ", FormatTime(keep.from), "; to ", keep.way, " it takes ",
                          takes());
    case KeepRule::kMethodPaused:
      return absl::StrCat(keep.way, " is tried again at ", FormatTime(keep.from), ", and takes ", takes(),
                          "; ", keep.note);
    case KeepRule::kNoRoom:
      return absl::StrCat("there is no room for its image: ", keep.note);
    case KeepRule::kNotMeasured:
      return absl::StrCat("no way to take it off has been measured yet", note);
    case KeepRule::kElsewhere:
      return "is on no node that the request could use";
    case KeepRule::kTooSlow:
      return absl::StrCat("could not be gone in time: to ", keep.way, " it takes ", takes());
    case KeepRule::kAwaited:
      return absl::StrCat("is waited for, until it ends by its walltime at ", FormatTime(keep.from));
    case KeepRule::kNotNeeded:
      return absl::StrCat("not needed: would free ", CountNodes(static_cast<size_t>(keep.nodes)), " for ",
                          NodeSeconds(std::llround(keep.loss_node_seconds * 1000)), " (", keep.way, ")",
                          note);
    case KeepRule::kRefused:
      return "nothing is touched, as the request is refused";
  }
  return keep.reason;
}

PlanKeep KeepOf(const JobView& job) {
  PlanKeep keep;
  keep.job = job.id;
  keep.nodes = static_cast<int>(job.nodes.size());
  return keep;
}

std::optional<PlanKeep> WhyLate(const Candidate& candidate, Duration within) {
  if (!candidate.why_not.empty()) return WithText(candidate.keep);
  const auto by_release = [](const Option& a, const Option& b) { return a.release < b.release; };
  const Option& fastest = *std::min_element(candidate.options.begin(), candidate.options.end(), by_release);
  if (fastest.release <= within) return std::nullopt;
  const bool paused = WaitsForMethod(candidate, fastest);
  const bool saved = !paused && WaitsForImage(candidate, fastest);
  PlanKeep keep = fastest.wait > Duration(0) && !paused && !saved ? candidate.keep : KeepOf(*candidate.job);
  keep.way = Way(fastest);
  keep.loss_node_seconds = LossOf(fastest);
  keep.release = fastest.release - fastest.wait;
  if (paused) {
    keep.rule = KeepRule::kMethodPaused;
    keep.way = ToString(fastest.method);
    keep.from = candidate.job->methods_back_at.at(fastest.method);
    keep.note = candidate.job->methods_note;
  } else if (saved) {
    keep.rule = KeepRule::kBeingSaved;
    keep.from = *candidate.job->saved_by;
    keep.note = kBeingSavedText;
  } else if (fastest.wait == Duration(0)) {
    keep.rule = KeepRule::kTooSlow;
  }
  return WithText(std::move(keep));
}

PlanKeep WhyAwaited(const JobView& job) {
  PlanKeep keep = KeepOf(job);
  keep.rule = KeepRule::kAwaited;
  keep.from = *job.ends_at;
  return WithText(std::move(keep));
}

PlanKeep WhyUntouched(const JobView& job) {
  PlanKeep keep = KeepOf(job);
  keep.rule = KeepRule::kRefused;
  return WithText(std::move(keep));
}

PlanKeep WhyKept(const Candidate& candidate, Duration within, bool useful) {
  if (!candidate.why_not.empty()) return WithText(candidate.keep);
  PlanKeep keep = KeepOf(*candidate.job);
  if (!useful) {
    keep.rule = KeepRule::kElsewhere;
    return WithText(std::move(keep));
  }
  if (std::optional<PlanKeep> late = WhyLate(candidate, within)) return *std::move(late);
  const Option* cheapest = nullptr;
  for (const Option& option : candidate.options) {
    if (option.release > within || option.migrates) continue;
    if (cheapest == nullptr || option.cost_ms < cheapest->cost_ms) cheapest = &option;
  }
  keep.rule = KeepRule::kNotNeeded;
  keep.way = Way(*cheapest);
  keep.release = cheapest->release;
  keep.loss_node_seconds = LossOf(*cheapest);
  keep.note = candidate.job->methods_note;
  const std::string room = AboutRoom(candidate, *cheapest);
  keep.note += keep.note.empty() && !room.empty() ? room.substr(2) : room;
  return WithText(std::move(keep));
}

}  // namespace siding
