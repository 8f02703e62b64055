#include "planner/explain.h"

#include <algorithm>

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

std::string AgainAt(const Candidate& candidate, const Option& option) {
  return absl::StrCat(ToString(option.method), " is tried again at ",
                      FormatTime(candidate.job->methods_back_at.at(option.method)));
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
  std::string text =
      absl::StrCat("frees ", CountNodes(candidate.job->nodes.size()), " in ",
                   FormatDuration(chosen.release - chosen.wait), " for ", NodeSeconds(chosen.loss_ms));
  if (WaitsForMethod(candidate, chosen))
    absl::StrAppend(&text, "; ", AgainAt(candidate, chosen));
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

std::string WhyLate(const Candidate& candidate, Duration within) {
  if (!candidate.why_not.empty()) return candidate.why_not;
  const auto by_release = [](const Option& a, const Option& b) { return a.release < b.release; };
  const Option& fastest = *std::min_element(candidate.options.begin(), candidate.options.end(), by_release);
  if (fastest.release <= within) return "";
  if (WaitsForMethod(candidate, fastest)) {
    return absl::StrCat(AgainAt(candidate, fastest), ", and takes ",
                        FormatDuration(fastest.release - fastest.wait), "; ", candidate.job->methods_note);
  }
  if (fastest.wait > Duration(0)) {
    return absl::StrCat(candidate.why_later, ", until ", FormatTime(candidate.from), "; to ", Way(fastest),
                        " it takes ", FormatDuration(fastest.release - fastest.wait));
  }
  return absl::StrCat("could not be gone in time: to ", Way(fastest), " it takes ",
                      FormatDuration(fastest.release));
}

std::string WhyAwaited(const JobView& job) {
  return absl::StrCat("is waited for, until it ends by its walltime at ", FormatTime(*job.ends_at));
}

std::string WhyKept(const Candidate& candidate, Duration within, bool useful) {
  if (!candidate.why_not.empty()) return candidate.why_not;
  if (!useful) return "is on no node that the request could use";
  if (std::string late = WhyLate(candidate, within); !late.empty()) return late;
  const Option* cheapest = nullptr;
  for (const Option& option : candidate.options) {
    if (option.release > within || option.migrates) continue;
    if (cheapest == nullptr || option.cost_ms < cheapest->cost_ms) cheapest = &option;
  }
  std::string text = absl::StrCat("not needed: would free ", CountNodes(candidate.job->nodes.size()), " for ",
                                  NodeSeconds(cheapest->loss_ms), " (", Way(*cheapest), ")");
  if (!candidate.job->methods_note.empty()) absl::StrAppend(&text, "; ", candidate.job->methods_note);
  return text + AboutRoom(candidate, *cheapest);
}

}  // namespace siding
