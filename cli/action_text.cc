#include "cli/action_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/render.h"
#include "common/logging.h"
#include "common/units.h"

namespace siding::cli {
namespace {

std::string NamedJob(int64_t job, const std::string& name) {
  return absl::StrCat("job ", job, name.empty() ? "" : absl::StrCat(" (", OneLogLine(name), ")"));
}

std::string In(int64_t at_us, const v1::ActionPlan& plan) {
  return absl::StrCat(" in ", FormatDuration(Duration(at_us - plan.made_us())));
}

std::string ImageText(const v1::ActionPlan& plan) {
  return absl::StrCat("an image",
                      plan.bytes() == 0 ? "" : absl::StrCat(" of ", FormatBytes(Bytes{plan.bytes()})), " in ",
                      TierName(plan.tier()), " storage");
}

// What is true when it is done.
std::string DoneText(const v1::ActionPlan& plan) {
  const std::string& verb = plan.verb();
  if (verb == "suspend") return "is frozen";
  if (verb == "checkpoint") return "has " + ImageText(plan) + ", and runs on";
  if (verb == "vacate")
    return absl::StrCat("has left ", absl::StrJoin(plan.nodes(), ","), ", with ", ImageText(plan));
  if (verb == "migrate")
    return absl::StrCat("runs on ", absl::StrJoin(plan.target(), ","), ", from ", ImageText(plan));
  return "has ended";
}

std::string CordonText(const v1::ActionPlan& plan) {
  const std::string who = absl::StrJoin(plan.stay(), ", ");
  return absl::StrCat("cordon: node ", absl::StrJoin(plan.nodes(), ","), " takes nothing new; ",
                      plan.stay().empty()     ? "no job has it"
                      : plan.stay_size() == 1 ? absl::StrCat("job ", who, " stays")
                                              : absl::StrCat("jobs ", who, " stay"),
                      "\n");
}

// How long it does not compute, by what is known: nobody knows when it is resumed, or finds nodes again.
std::string LossText(const v1::ActionPlan& plan) {
  const std::string& verb = plan.verb();
  if (verb == "kill")
    return absl::StrFormat("; %.1f node-seconds of work are lost\n", plan.loss_node_seconds());
  return absl::StrFormat("; for %.1f node-seconds%s\n", plan.loss_node_seconds(),
                         verb == "suspend"  ? ", and until it is resumed"
                         : verb == "vacate" ? ", and while it waits for nodes"
                                            : "");
}

std::string JobText(const v1::ActionPlan& plan) {
  const bool ends = plan.verb() == "kill";
  std::string text =
      absl::StrCat(plan.verb(), ": ", NamedJob(plan.job(), plan.job_name()), " ", DoneText(plan));
  if (plan.done_us() == 0)
    return absl::StrCat(text, "; how long that takes is not known", ends ? LossText(plan) : "\n");
  absl::StrAppend(&text, In(plan.done_us(), plan), ends ? " at the latest" : "");
  if (plan.begins_us() != 0)
    absl::StrAppend(&text, ", which begins when it has been saved,", In(plan.begins_us(), plan));
  return text + LossText(plan);
}

std::string StartText(int64_t start_us, int64_t start_by_us) {
  if (start_us == 0) return "is not served";
  const Duration margin(start_by_us - start_us);
  return margin >= Duration(0) ? absl::StrCat("starts ", FormatDuration(margin), " before it")
                               : absl::StrCat("starts ", FormatDuration(-margin), " too late");
}

std::string DeadlineText(const v1::DeadlineChange& change) {
  const std::string before = StartText(change.before_us(), change.start_by_us());
  const std::string after = StartText(change.after_us(), change.start_by_us());
  return absl::StrCat("  deadline of ", NamedJob(change.request(), change.name()), ", ",
                      FormatTime(FromMicros(change.start_by_us())), ": ", after, ", ",
                      before == after ? "as without this" : absl::StrCat("and without this ", before), "\n");
}

std::string DeadlinesText(const v1::ActionPlan& plan) {
  const int left_out = plan.deadlines_left_out();
  if (plan.deadlines().empty() && left_out == 0) return "  no deadline that you may see waits for nodes\n";
  std::string text;
  for (const v1::DeadlineChange& change : plan.deadlines()) text += DeadlineText(change);
  if (plan.verb() != "cordon" && plan.done_us() == 0) {
    absl::StrAppend(&text, "  so it is not known either what becomes of deadlines: ", left_out,
                    left_out == 1 ? " waits" : " wait", " for nodes\n");
  } else if (left_out > 0) {
    absl::StrAppend(&text, "  and ", left_out, " later deadlines\n");
  }
  return text;
}

}  // namespace

std::string ActionText(const v1::ActionPlan& plan) {
  return absl::StrCat(plan.verb() == "cordon" ? CordonText(plan) : JobText(plan), DeadlinesText(plan),
                      "nothing was changed; --if-unchanged ", plan.sequence(),
                      " gives the order if this still holds\n");
}

}  // namespace siding::cli
