#include "controller/platform/kubernetes/reconcile/request_status.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "controller/platform/kubernetes/client/status_fields.h"

namespace siding::kubernetes {
namespace {

constexpr char kInvalid[] = "Invalid";
constexpr char kRefused[] = "Refused";
constexpr char kIsFalse[] = "False";
constexpr char kIsTrue[] = "True";

const Json* ConditionOf(const Json& status, absl::string_view type) {
  for (const Json& condition : ListAt(status, {"conditions"})) {
    if (TextAt(condition, {"type"}) == type) return &condition;
  }
  return nullptr;
}

bool IsCondition(const Json& status, absl::string_view type, absl::string_view value) {
  const Json* condition = ConditionOf(status, type);
  return condition != nullptr && TextAt(*condition, {"status"}) == value;
}

Json StatusAt(const Request& request) { return StatusIn(*request.json); }

// A status, from what it was.
class Draft {
 public:
  Draft(const Request& request, int64_t generation, Time now)
      : status_(StatusAt(request)), generation_(generation), now_(TimeText(now)) {
    Json kept = ListAt(status_, {"conditions"});
    status_["conditions"] = std::move(kept);
  }

  // "": it goes.
  void Say(const char* field, const std::string& text) {
    if (text.empty()) {
      status_.erase(field);
    } else {
      status_[field] = text;
    }
  }
  void SayTime(const char* field, const std::optional<Time>& time) {
    Say(field, time ? TimeText(*time) : "");
  }
  void Set(const char* field, Json value) { status_[field] = std::move(value); }
  void Condition(const char* type, const char* value, const std::string& reason, const std::string& message) {
    const Json* before = ConditionOf(status_, type);
    const bool stays = before != nullptr && TextAt(*before, {"status"}) == value;
    Json condition = {{"type", type},
                      {"status", value},
                      {"reason", reason},
                      {"message", message},
                      {"observedGeneration", generation_},
                      {"lastTransitionTime", stays ? TextAt(*before, {"lastTransitionTime"}) : now_}};
    if (before != nullptr) {
      status_["conditions"].at(before - &status_["conditions"].front()) = std::move(condition);
    } else {
      status_["conditions"].push_back(std::move(condition));
    }
  }
  void Drop(absl::string_view type) {
    Json& conditions = status_["conditions"];
    for (size_t i = 0; i < conditions.size(); ++i) {
      if (TextAt(conditions[i], {"type"}) == type) conditions.erase(i--);
    }
  }
  void State(const char* state, const std::string& reason = "") {
    Say("state", state);
    Say("reason", reason);
  }
  // For good.
  void Fail(const char* reason, const std::string& why) {
    Condition("Running", kIsFalse, reason, why);
    Condition("Failed", kIsTrue, reason, why);
    State("Failed", why);
  }
  const Json& status() const { return status_; }

 private:
  Json status_;
  const int64_t generation_;
  const std::string now_;
};

// What its pods come to.
struct Sum {
  int expected = 0;
  int placed = 0;  // have a node
  int started = 0;
  int over = 0;
  int succeeded = 0;
  std::optional<Time> last_start;
  std::string gone, failed, refused, missing;  // names of pods, the first of each; of refused ones: why
  Json seen = Json::array();                   // their names
};

Sum SumOf(const Request& request, const RequestRecord& record, const RequestNow& there) {
  Sum sum;
  sum.expected = record.count;
  for (int index = 0; index < record.count; ++index) {
    const std::string name = PodNameOf(request, index);
    const auto& standing = there.pods[index];
    const bool is_there = standing && IsPodOf(request, *standing);
    const bool was_there = record.pods.contains(name);
    if (is_there || was_there) sum.seen.push_back(name);
    if (!is_there) {
      std::string& first = was_there ? sum.gone : sum.missing;
      if (first.empty()) first = name;
      continue;
    }
    const Pod& pod = standing->pod;
    if (!pod.node.empty()) ++sum.placed;
    if (pod.started) {
      ++sum.started;
      sum.last_start = std::max(*pod.started, sum.last_start.value_or(*pod.started));
    }
    if (IsOver(pod)) ++sum.over;
    if (pod.phase == PodPhase::kSucceeded) ++sum.succeeded;
    if (pod.phase == PodPhase::kFailed && sum.failed.empty()) sum.failed = name;
    if (sum.refused.empty()) sum.refused = standing->refused;
  }
  return sum;
}

// Nothing will come of it any more. False: something may.
bool SayEnd(const Sum& sum, bool changed, bool has_started, Draft& draft) {
  const int left = sum.expected - sum.over;
  if (sum.succeeded == sum.expected) {
    draft.Condition("Running", kIsFalse, "Ended", "its pods have ended");
    draft.Condition("Completed", kIsTrue, "Succeeded", "all its pods have succeeded");
    draft.State("Completed");
    return true;
  }
  // A gang that has lost a pod before all of them ran will never be whole.
  if (!sum.failed.empty() && (left == 0 || !has_started)) {
    draft.Fail("PodFailed", absl::StrCat("pod ", sum.failed, " has failed"));
    return true;
  }
  const bool others_run = has_started && sum.started > sum.over;
  if (!sum.gone.empty() && !others_run) {
    draft.Fail("PodGone",
               absl::StrCat("pod ", sum.gone, " is gone: it was deleted or evicted; it is not made again"));
    return true;
  }
  if (!sum.missing.empty() && changed) {
    draft.Fail("SpecChanged", "spec: expected no change: it was changed before all its pods were made");
    return true;
  }
  return false;
}

void SayRefused(const std::string& why, const std::optional<Time>& earliest, Draft& draft) {
  draft.Condition("Planned", kIsFalse, kRefused, why);
  draft.Condition("Failed", kIsTrue, kRefused, why);
  draft.State(kRefused, why);
  draft.Say("plan", "");
  draft.SayTime("predictedStart", std::nullopt);
  draft.SayTime("earliest", earliest);
}

void SayPlan(const Outlook& outlook, Draft& draft) {
  draft.Condition("Planned", outlook.planned ? kIsTrue : kIsFalse, outlook.planned ? "Planned" : "Waits",
                  outlook.text);
  draft.Say("plan", outlook.text);
  draft.SayTime("predictedStart", outlook.predicted);
  draft.SayTime("earliest", std::nullopt);
}

}  // namespace

RequestRecord RecordOf(const Request& request) {
  const Json status = StatusAt(request);
  RequestRecord record;
  if (const Json* accepted = ConditionOf(status, "Accepted"); accepted != nullptr) {
    record.generation = WholeAt(*accepted, {"observedGeneration"});
    record.accepted = TextAt(*accepted, {"status"}) == kIsTrue;
    record.invalid = !record.accepted && TextAt(*accepted, {"reason"}) == kInvalid &&
                     record.generation == request.generation;
  }
  record.count = static_cast<int>(std::clamp<int64_t>(WholeAt(status, {"count"}, 1), 1, kMostPods));
  for (const Json& pod : ListAt(status, {"pods"})) record.pods.insert(TextAt(pod, {}));
  const Json* failed = ConditionOf(status, "Failed");
  record.over = IsCondition(status, "Completed", kIsTrue) ||
                (IsCondition(status, "Failed", kIsTrue) && TextAt(*failed, {"reason"}) != kRefused);
  return record;
}

bool IsPodOf(const Request& request, const PodStanding& pod) { return pod.pod.owner.uid == request.uid; }

Json StatusIfAccepted(const Request& request, const RequestSpec& spec, Time now) {
  Draft draft(request, request.generation, now);
  draft.Condition("Accepted", kIsTrue, "Accepted", "its pods are made from the template");
  draft.State("Accepted");
  draft.SayTime("deadline", spec.start_by);
  draft.Set("count", spec.count);
  return draft.status();
}

Json StatusIfTurnedDown(const Request& request, const std::string& reason, const std::string& why, Time now) {
  Draft draft(request, request.generation, now);
  draft.Condition("Accepted", kIsFalse, reason, why);
  draft.State(kInvalid, why);
  return draft.status();
}

Json StatusOf(const Request& request, const RequestNow& there, Time now) {
  const RequestRecord record = RecordOf(request);
  const Sum sum = SumOf(request, record, there);
  const bool changed = request.generation != record.generation;
  Draft draft(request, record.generation, now);
  if (changed)
    draft.Condition("Accepted", kIsTrue, "ChangeIgnored",
                    absl::StrCat("spec: expected no change after generation ", record.generation,
                                 ", which counts; make another request for what generation ",
                                 request.generation, " says"));
  draft.Set("pods", sum.seen);
  const bool all_started = sum.started == sum.expected;
  if (all_started) draft.SayTime("started", sum.last_start);
  const bool has_started = all_started || !TextAt(StatusAt(request), {"started"}).empty();
  if (SayEnd(sum, changed, has_started, draft)) return draft.status();
  // A pod that is made after its deadline is refused.
  const absl::StatusOr<Time> deadline = ParseTime(TextAt(draft.status(), {"deadline"}), now);
  if (!sum.missing.empty() && !there.problem.empty() && deadline.ok() && now > *deadline) {
    draft.Fail("PodsNotMade", there.problem);
    return draft.status();
  }
  if (has_started) {
    draft.Drop("Failed");
    if (there.outlook && there.outlook->planned) SayPlan(*there.outlook, draft);
    draft.Condition("Running", kIsTrue, "Started", "its pods have started");
    draft.State("Running");
    return draft.status();
  }
  draft.Condition("Running", kIsFalse, there.problem.empty() ? "Waits" : "PodsNotMade",
                  there.problem.empty() ? "its pods have not all started" : there.problem);
  // With nodes they need no plan, and the engine has yet to hear that they start.
  const bool wants_plan = sum.placed != sum.expected;
  if (!sum.refused.empty()) {
    SayRefused(sum.refused, std::nullopt, draft);
  } else if (there.outlook && there.outlook->refused) {
    SayRefused(there.outlook->text, there.outlook->earliest, draft);
  } else if (there.outlook && (there.outlook->planned || wants_plan)) {
    draft.Drop("Failed");  // a refusal is not for good: what the pod asks may be mended
    SayPlan(*there.outlook, draft);
    draft.State(there.outlook->planned ? "Planned" : "Accepted",
                there.outlook->planned ? "" : there.outlook->text);
  } else if (!there.outlook && IsCondition(StatusAt(request), "Failed", kIsTrue)) {
    return StatusAt(request);  // the engine has forgotten what it refused long ago
  } else {
    draft.Say("reason", "");
  }
  if (!there.problem.empty()) draft.Say("reason", there.problem);
  return draft.status();
}

std::optional<Json> PatchTowards(const Request& request, const Json& status) {
  return StatusPatch(*request.json, request.version, status);
}

}  // namespace siding::kubernetes
