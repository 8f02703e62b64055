// Events as JSON. Names and fields are described in docs/design/journal-format.md; absent fields keep their
// defaults, so that what an older siding wrote stays readable.
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "controller/journal/journal.h"

namespace siding {

using nlohmann::json;

// ---- Small values ----

static void to_json(json& j, const Bytes& v) { j = v.value; }
static void from_json(const json& j, Bytes& v) { v.value = j.get<int64_t>(); }

template <class Tag, class Rep>
static void to_json(json& j, const StrongId<Tag, Rep>& v) {
  j = v.value();
}
template <class Tag, class Rep>
static void from_json(const json& j, StrongId<Tag, Rep>& v) {
  v = StrongId<Tag, Rep>(j.get<Rep>());
}

static void to_json(json& j, Method v) { j = ToString(v); }
static void from_json(const json& j, Method& v) {
  auto parsed = ParseMethod(j.get<std::string>());
  if (!parsed.ok()) throw std::invalid_argument(std::string(parsed.status().message()));
  v = *parsed;
}

static void to_json(json& j, Tier v) { j = ToString(v); }
static void from_json(const json& j, Tier& v) {
  auto parsed = ParseTier(j.get<std::string>());
  if (!parsed.ok()) throw std::invalid_argument(std::string(parsed.status().message()));
  v = *parsed;
}

static void to_json(json& j, JobEvent v) { j = ToString(v); }
static void from_json(const json& j, JobEvent& v) {
  auto parsed = ParseJobEvent(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown lifecycle event '" + j.get<std::string>() + "'");
  v = *parsed;
}

static void to_json(json& j, HandVerb v) { j = ToString(v); }
static void from_json(const json& j, HandVerb& v) {
  auto parsed = ParseHandVerb(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown verb '" + j.get<std::string>() + "'");
  v = *parsed;
}

static void to_json(json& j, LossBy v) { j = ToString(v); }
static void from_json(const json& j, LossBy& v) {
  auto parsed = ParseLossBy(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown kind of loss '" + j.get<std::string>() + "'");
  v = *parsed;
}

static void to_json(json& j, JobAction v) { j = ToString(v); }
static void from_json(const json& j, JobAction& v) {
  const auto parsed = ParseJobAction(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown action '" + j.get<std::string>() + "'");
  v = *parsed;
}

static void to_json(json& j, NodeCopies v) { j = ToString(v); }
static void from_json(const json& j, NodeCopies& v) {
  const auto parsed = ParseNodeCopies(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown kind of copies " + j.get<std::string>());
  v = *parsed;
}
static void to_json(json& j, CheckpointState v) { j = ToString(v); }
static void from_json(const json& j, CheckpointState& v) {
  auto parsed = ParseCheckpointState(j.get<std::string>());
  if (!parsed) throw std::invalid_argument("unknown state of a checkpoint '" + j.get<std::string>() + "'");
  v = *parsed;
}

static void to_json(json& j, const MethodSet& v) {
  j = json::array();
  for (Method m : kAllMethods) {
    if (v.Has(m)) j.push_back(m);
  }
}
static void from_json(const json& j, MethodSet& v) {
  for (const json& m : j) v.Add(m.get<Method>());
}

}  // namespace siding

// Time and Duration are std::chrono's, so nlohmann looks for their converters here.
template <>
struct nlohmann::adl_serializer<siding::Duration> {
  static void to_json(json& j, const siding::Duration& v) { j = v.count(); }
  static void from_json(const json& j, siding::Duration& v) { v = siding::Duration(j.get<int64_t>()); }
};
template <>
struct nlohmann::adl_serializer<siding::Time> {
  static void to_json(json& j, const siding::Time& v) { j = siding::ToMicros(v); }
  static void from_json(const json& j, siding::Time& v) { v = siding::FromMicros(j.get<int64_t>()); }
};
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& j, const std::optional<T>& v) {
    if (v) {
      j = *v;
    } else {
      j = nullptr;
    }
  }
  static void from_json(const json& j, std::optional<T>& v) {
    if (j.is_null()) {
      v.reset();
    } else {
      v = j.get<T>();
    }
  }
};

namespace siding {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Resources, slots, memory, gpus)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(AppMethod, signal, marker, grace, restart_command)

static void to_json(json& j, GpuCollectives v) { j = ToString(v); }
static void from_json(const json& j, GpuCollectives& v) {
  const auto name = j.get<std::string>();
  if (name == ToString(GpuCollectives::kUnsaid)) {
    v = GpuCollectives::kUnsaid;
    return;
  }
  const auto parsed = ParseGpuCollectives(name);
  if (!parsed.ok()) throw std::invalid_argument(std::string(parsed.status().message()));
  v = *parsed;
}

static void to_json(json& j, OnNodeFailure v) { j = ToString(v); }
static void from_json(const json& j, OnNodeFailure& v) {
  const auto name = j.get<std::string>();
  if (name == ToString(OnNodeFailure::kUnsaid)) {
    v = OnNodeFailure::kUnsaid;
    return;
  }
  const auto parsed = ParseOnNodeFailure(name);
  if (!parsed.ok()) throw std::invalid_argument(std::string(parsed.status().message()));
  v = *parsed;
}

static void to_json(json& j, KeepRule v) { j = ToString(v); }
static void from_json(const json& j, KeepRule& v) {
  const auto rule = ParseKeepRule(j.get<std::string>());
  if (!rule) throw std::invalid_argument("rule '" + j.get<std::string>() + "': not known");
  v = *rule;
}

static void to_json(json& j, JobKind v) { j = ToString(v); }
static void from_json(const json& j, JobKind& v) {
  const auto name = j.get<std::string>();
  if (name != ToString(JobKind::kBatch) && name != ToString(JobKind::kOnDemand)) {
    throw std::invalid_argument("kind '" + name + "': expected batch or on-demand");
  }
  v = name == ToString(JobKind::kOnDemand) ? JobKind::kOnDemand : JobKind::kBatch;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobSpec, name, kind, uid, gid, user, nodes, per_node,
                                                priority, command, env, workdir, output, methods, app,
                                                kill_grace, checkpoint_interval, auto_checkpoint_interval,
                                                max_preemptions, labels, start_by, not_before, hold,
                                                cluster_manager, notice, gpu_collectives, allow_io_uring,
                                                append_files, keep_connections, walltime, on_node_failure)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PlanStep, job, method, tier, nodes, begin, early,
                                                predicted_release, bytes, loss_node_seconds, reason,
                                                through_ram, target)
// Fifty of them are in each plan of a large cluster: only what is said.
static void to_json(json& j, const PlanKeep& keep) {
  const PlanKeep unsaid;
  j = json{{"job", keep.job}, {"reason", keep.reason}};
  const auto add = [&](const char* name, const auto& value, const auto& none) {
    if (value != none) j[name] = value;
  };
  add("rule", keep.rule, unsaid.rule);
  add("policy_key", keep.policy_key, unsaid.policy_key);
  add("job_class", keep.job_class, unsaid.job_class);
  add("from", keep.from, unsaid.from);
  add("way", keep.way, unsaid.way);
  add("release", keep.release, unsaid.release);
  add("loss_node_seconds", keep.loss_node_seconds, unsaid.loss_node_seconds);
  add("nodes", keep.nodes, unsaid.nodes);
  add("note", keep.note, unsaid.note);
}
static void from_json(const json& j, PlanKeep& keep) {
  const PlanKeep unsaid;
  keep.job = j.value("job", unsaid.job);
  keep.reason = j.value("reason", unsaid.reason);
  keep.rule = j.value("rule", unsaid.rule);
  keep.policy_key = j.value("policy_key", unsaid.policy_key);
  keep.job_class = j.value("job_class", unsaid.job_class);
  keep.from = j.value("from", unsaid.from);
  keep.way = j.value("way", unsaid.way);
  keep.release = j.value("release", unsaid.release);
  keep.loss_node_seconds = j.value("loss_node_seconds", unsaid.loss_node_seconds);
  keep.nodes = j.value("nodes", unsaid.nodes);
  keep.note = j.value("note", unsaid.note);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(KeptGroup, rule, policy_key, job_class, jobs)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Plan, request, feasible, queued, exact, steps, nodes, kept,
                                                kept_groups, predicted_start, loss_node_seconds,
                                                cost_node_seconds, refusal, earliest, awaited)

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobSubmitted, spec, request_key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobMoved, event, reason, nodes, checkpoint, tier,
                                                keep_running, for_good, request, target, predicted, bytes,
                                                started, exit_code, through_ram, incarnation, first_rank,
                                                notice, without_save, interrupted, found, gpu_state_lost,
                                                over_limit, digests, from_beginning, stopped, by, new_bytes,
                                                others_follow, waited)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankExited, rank, exit_code)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RequestPlanned, plan)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RequestRefused, spec, plan, request_key)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MethodLost, method, why, back_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MethodRegained, method)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CheckpointChanged, checkpoint, state, note, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CopiesChanged, checkpoint, copies, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeCordoned, node, cordoned, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NodeLost, node, lost, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PolicyChanged, changes, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TasksLeft, node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TasksGone, node)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Noted, text, rank, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TasksChanged, nodes, first_rank)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Tally, met, missed, refused, preemptions, lost_node_seconds,
                                                damaged_checkpoints, gpu_states_lost, restarts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImageWrites, images, bytes, took)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Trend, met, missed, refused, preemptions, lost_node_ms,
                                                releases, writes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Trends, hours, days)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ActionCount, done, failed, last_failed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Histogram, counts, sum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ImageTotals, ms, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Totals, lost_node_ms, actions, dumps, restores,
                                                release_ratios, margins, last_start, last_margin, last_missed,
                                                exact_plans, other_plans, victims)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobsForgotten, jobs, last_job, tally, trends, totals)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JournalRestored, copied, last_job, orders)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(BecamePreemptible, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobHeld, held, by_operator, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobUpdated, priority, walltime, by)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HandOrder, verb, tier, target)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(OrderWaits, waits, order, until, by, by_operator, why)

namespace {

// Where a whole number belongs the library would make one of a fraction, whatever it is.
void RefuseFractions(const json& body) {
  for (std::vector<const json*> left = {&body}; !left.empty();) {
    const json& one = *left.back();
    left.pop_back();
    for (auto item = one.begin(); item != one.end(); ++item) {
      if (item->is_structured()) left.push_back(&*item);
      const bool may = one.is_object() && absl::EndsWith(item.key(), "_node_seconds");
      if (item->is_number_float() && !may)
        throw std::invalid_argument("expected a whole number, found " + item->dump());
    }
  }
}

// In the order of EventBody's alternatives.
constexpr const char* kKinds[] = {"submitted",
                                  "moved",
                                  "rank-exited",
                                  "planned",
                                  "refused",
                                  "method-lost",
                                  "checkpoint-changed",
                                  "node-cordoned",
                                  "noted",
                                  "tasks-changed",
                                  "forgotten",
                                  "restored",
                                  "node-lost",
                                  "tasks-gone",
                                  "method-regained",
                                  "became-preemptible",
                                  "tasks-left",
                                  "held",
                                  "updated",
                                  "order-waits",
                                  "policy-changed",
                                  "copies-changed"};
static_assert(std::size(kKinds) == std::variant_size_v<EventBody>);

template <size_t I = 0>
absl::StatusOr<EventBody> DecodeAs(const std::string& kind, const json& j) {
  if constexpr (I == std::variant_size_v<EventBody>) {
    return absl::DataLossError(
        absl::StrCat("unknown kind of event '", kind, "'; perhaps a newer siding wrote it"));
  } else {
    if (kind == kKinds[I]) return EventBody(j.get<std::variant_alternative_t<I, EventBody>>());
    return DecodeAs<I + 1>(kind, j);
  }
}

}  // namespace

std::string BodyKind(const EventBody& body) { return kKinds[body.index()]; }

std::string EncodeEventBody(const Event& event) {
  return std::visit(
      [](const auto& body) { return json(body).dump(-1, ' ', false, json::error_handler_t::replace); },
      event.body);
}

absl::StatusOr<EventBody> DecodeEventBody(const std::string& kind, const std::string& text) {
  // nlohmann throws; nothing of ours does.
  try {
    const json body = json::parse(text);
    RefuseFractions(body);
    return DecodeAs(kind, body);
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("event '", kind, "': ", error.what()));
  }
}

}  // namespace siding
