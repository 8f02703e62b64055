// Events in words, for `sidingctl events` and the logs.
#include "model/event.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace siding {
namespace {

std::string Join(const std::vector<NodeId>& nodes) {
  return absl::StrJoin(nodes, ",",
                       [](std::string* out, const NodeId& n) { absl::StrAppend(out, n.value()); });
}

std::string Because(const JobMoved& e) {
  std::string text;
  if (e.request != JobId()) absl::StrAppend(&text, " for request ", e.request.value());
  if (!e.reason.empty()) absl::StrAppend(&text, ": ", e.reason);
  return text;
}

// Where that is all of it, as where it is not known, nothing.
std::string NewOf(const JobMoved& e) {
  const bool shares = e.new_bytes > Bytes{} && e.new_bytes < e.bytes;
  return shares ? absl::StrCat(", ", FormatBytes(e.new_bytes), " of it new") : "";
}

std::string FromCheckpoint(const JobMoved& e) {
  return e.checkpoint == CheckpointId() ? "" : absl::StrCat(" from checkpoint ", e.checkpoint.value());
}

std::string DescribeMove(const JobMoved& e) {
  switch (e.event) {
    case JobEvent::kPlace:
      return absl::StrCat(e.checkpoint == CheckpointId() ? "placed on " : "to be restored on ", Join(e.nodes),
                          FromCheckpoint(e), Because(e));
    case JobEvent::kOrderDump:
      return absl::StrCat("checkpoint ", e.checkpoint.value(), " to ", ToString(e.tier), " storage ordered",
                          e.keep_running ? ", the job continues" : "", Because(e));
    case JobEvent::kCommit:
      return absl::StrCat("every rank dumped, ", FormatBytes(e.bytes), NewOf(e), Because(e));
    case JobEvent::kOrderKill:
      return absl::StrCat(e.over_limit       ? "to be ended, its time is over"
                          : e.for_good       ? "to be ended for good"
                          : e.from_beginning ? "to be ended, and started from its beginning"
                                             : "to be ended and queued again",
                          Because(e));
    case JobEvent::kOrderSuspend:
      return absl::StrCat(
          "freeze ordered",
          e.through_ram ? absl::StrCat(", then a checkpoint to ", ToString(e.tier), " storage") : "",
          Because(e));
    case JobEvent::kOrderResume:
      return "to continue where it was frozen" + Because(e);
    case JobEvent::kOrderSave:
      return "the program was told to save itself" + Because(e);
    case JobEvent::kStarted:
      return "running" + Because(e);
    case JobEvent::kRestored:
      // Not from one: from what the program saved itself, or, by a cluster manager, from the beginning.
      return absl::StrCat("running again", FromCheckpoint(e), Because(e));
    case JobEvent::kThawed:
      return "running" + Because(e);
    case JobEvent::kFrozen:
      return "frozen in RAM" + Because(e);
    case JobEvent::kReleased:
      return "left its nodes, waits with its work saved" + Because(e);
    case JobEvent::kContinued:
      return absl::StrCat(
          "checkpoint is durable, the job continued",
          e.stopped > Duration(0) ? absl::StrCat(", it had stopped for ", FormatDuration(e.stopped)) : "",
          Because(e));
    case JobEvent::kSucceeded:
      return "finished" + Because(e);
    case JobEvent::kFailed:
      return absl::StrCat("failed with exit code ", e.exit_code, Because(e));
    case JobEvent::kCancelled:
      return "cancelled" + Because(e);
    case JobEvent::kRequeued:
      return "ended, waits to start again" + Because(e);
    case JobEvent::kRestartNeeded:
      return "has to start from the beginning" + Because(e);
    case JobEvent::kRestoreFailed:
      return (e.interrupted ? "what ran is gone, waits to continue from what was saved"
                            : "could not continue there") +
             Because(e);
    case JobEvent::kStartFailed:
      return "could not be started" + Because(e);
    case JobEvent::kDumpFailed:
      return "could not be checkpointed and continues" + Because(e);
    case JobEvent::kStaysFrozen:
      return "stays frozen" + Because(e);
    case JobEvent::kFreezeFailed:
      return "could not be frozen and continues" + Because(e);
    case JobEvent::kSaveFailed:
      return "did not save itself and continues" + Because(e);
    case JobEvent::kStartGoesOn:
    case JobEvent::kRestoreGoesOn:
      return "begins after all" + Because(e);
  }
  return "?";
}

constexpr const char* kVerbs[] = {"suspend", "checkpoint", "vacate", "migrate"};

struct Kind {
  std::string operator()(const JobSubmitted&) { return "submitted"; }
  std::string operator()(const JobMoved& e) { return e.interrupted ? "interrupted" : ToString(e.event); }
  std::string operator()(const RankExited&) { return "rank-exited"; }
  std::string operator()(const TasksChanged&) { return "tasks-changed"; }
  std::string operator()(const RequestPlanned&) { return "planned"; }
  std::string operator()(const RequestRefused&) { return "refused"; }
  std::string operator()(const MethodLost&) { return "method-lost"; }
  std::string operator()(const MethodRegained&) { return "method-regained"; }
  std::string operator()(const CheckpointChanged& e) { return "checkpoint-" + ToString(e.state); }
  std::string operator()(const CopiesChanged& e) {
    switch (e.copies) {
      case NodeCopies::kUsed:
        return "checkpoint-copied";
      case NodeCopies::kUnwanted:
        return "copies-unwanted";
      case NodeCopies::kAlone:
        return "copy-damaged";
      case NodeCopies::kNone:
        break;
    }
    return "copies-gone";
  }
  std::string operator()(const NodeCordoned& e) { return e.cordoned ? "cordoned" : "uncordoned"; }
  std::string operator()(const NodeLost& e) { return e.lost ? "node-lost" : "node-back"; }
  std::string operator()(const PolicyChanged&) { return "policy-changed"; }
  std::string operator()(const TasksLeft&) { return "tasks-left"; }
  std::string operator()(const TasksGone&) { return "tasks-gone"; }
  std::string operator()(const BecamePreemptible&) { return "became-preemptible"; }
  std::string operator()(const JobHeld& e) { return e.held ? "held" : "unheld"; }
  std::string operator()(const JobUpdated&) { return "updated"; }
  std::string operator()(const OrderWaits& e) { return e.waits ? "order-waits" : "order-withdrawn"; }
  std::string operator()(const Noted&) { return "note"; }
  std::string operator()(const JobsForgotten&) { return "forgotten"; }
  std::string operator()(const JournalRestored&) { return "restored"; }
};

// One of each kind, for their names.
template <size_t... kIndex>
std::vector<EventBody> Examples(std::index_sequence<kIndex...>) {
  std::vector<EventBody> all = {std::variant_alternative_t<kIndex, EventBody>()...};
  for (int i = 0; i < kJobEventCount; ++i) {
    JobMoved move;
    move.event = static_cast<JobEvent>(i);
    all.emplace_back(move);
  }
  JobMoved interrupted;
  interrupted.interrupted = true;
  all.emplace_back(interrupted);
  for (int i = 0; i < kCheckpointStateCount; ++i) {
    if (static_cast<CheckpointState>(i) == CheckpointState::kBeingMade) continue;  // orders say so
    CheckpointChanged changed;
    changed.state = static_cast<CheckpointState>(i);
    all.emplace_back(changed);
  }
  for (const NodeCopies copies : {NodeCopies::kNone, NodeCopies::kUnwanted, NodeCopies::kAlone}) {
    CopiesChanged changed;
    changed.copies = copies;
    all.emplace_back(changed);
  }
  NodeCordoned uncordoned;
  uncordoned.cordoned = false;
  NodeLost back;
  back.lost = false;
  JobHeld unheld;
  unheld.held = false;
  OrderWaits withdrawn;
  withdrawn.waits = false;
  all.insert(all.end(), {uncordoned, back, unheld, withdrawn});
  return all;
}

struct Words {
  std::string operator()(const JobSubmitted& e) {
    return absl::StrCat(ToString(e.spec.kind), " job '", e.spec.name, "' of ", e.spec.user, ", ",
                        e.spec.nodes, e.spec.nodes == 1 ? " node" : " nodes");
  }
  std::string operator()(const JobMoved& e) { return DescribeMove(e); }
  std::string operator()(const TasksChanged& e) {
    return e.first_rank == 0 ? "its script stands for it again"
                             : absl::StrCat("a step of ", e.nodes.size(), " tasks stands for it");
  }
  std::string operator()(const RankExited& e) {
    return absl::StrCat("rank ", e.rank, " exited with ", e.exit_code);
  }
  std::string operator()(const RequestPlanned& e) {
    if (e.plan.queued) return "waits for nodes as they become free; " + e.plan.refusal;
    if (!e.plan.feasible) return "cannot be served by its deadline: " + e.plan.refusal;
    return absl::StrCat("will get ", Join(e.plan.nodes), " from ", e.plan.steps.size(),
                        e.plan.steps.size() == 1 ? " job" : " jobs", ", predicted ",
                        FormatTime(e.plan.predicted_start));
  }
  std::string operator()(const RequestRefused& e) { return e.plan.refusal; }
  std::string operator()(const MethodLost& e) {
    return absl::StrCat(ToString(e.method), " does not work for this job",
                        e.back_at == Time{} ? "" : absl::StrCat(" until ", FormatTime(e.back_at)), ": ",
                        e.why);
  }
  std::string operator()(const MethodRegained& e) {
    return absl::StrCat(ToString(e.method), " is tried with this job again");
  }
  std::string operator()(const CheckpointChanged& e) {
    return absl::StrCat("checkpoint ", e.checkpoint.value(), " ", ToString(e.state),
                        e.note.empty() ? "" : ": ", e.note);
  }
  std::string operator()(const CopiesChanged& e) {
    const std::string id = e.checkpoint.value(), why = e.note.empty() ? "" : ": " + e.note;
    switch (e.copies) {
      case NodeCopies::kUsed:
        return absl::StrCat("checkpoint ", id, " has been copied into shared storage", why);
      case NodeCopies::kUnwanted:
        return absl::StrCat("checkpoint ", id, " is left in shared storage only", why);
      case NodeCopies::kAlone:
        return absl::StrCat("checkpoint ", id,
                            " is damaged in shared storage, and good on its nodes' own disks", why);
      case NodeCopies::kNone:
        break;
    }
    return absl::StrCat("checkpoint ", id, " is gone from its nodes' own disks", why);
  }
  std::string operator()(const NodeCordoned& e) {
    return absl::StrCat("node ", e.node.value(), e.cordoned ? " takes nothing new" : " takes jobs again",
                        e.by.empty() ? "" : absl::StrCat(", says ", e.by));
  }
  std::string operator()(const NodeLost& e) {
    if (!e.lost) return absl::StrCat("node ", e.node.value(), " is there again");
    return absl::StrCat("node ", e.node.value(), " is lost, says ", e.by,
                        ": what ran there continues elsewhere");
  }
  std::string operator()(const PolicyChanged& e) {
    return absl::StrCat(
        e.by.empty() ? "the policy file has changed" : absl::StrCat("the policy was loaded again by ", e.by),
        ": ", absl::StrJoin(e.changes, "; "));
  }
  std::string operator()(const TasksLeft& e) {
    return absl::StrCat("tasks of an earlier life are left on ", e.node.value(), ", and are ended");
  }
  std::string operator()(const TasksGone& e) {
    return absl::StrCat("nothing of it is left on ", e.node.value(), ", which is back");
  }
  std::string operator()(const BecamePreemptible& e) {
    return absl::StrCat(e.why, ": it runs on, and makes way like a batch job");
  }
  std::string operator()(const JobHeld& e) {
    if (!e.held) return absl::StrCat("is not held any more, says ", e.by);
    return absl::StrCat("held by ", e.by, e.by_operator ? ", an operator" : "",
                        ": it gets no nodes until it is released");
  }
  std::string operator()(const JobUpdated& e) {
    std::vector<std::string> parts;
    if (e.priority) parts.push_back(absl::StrCat("priority ", *e.priority));
    if (e.walltime)
      parts.push_back(*e.walltime == Duration(0) ? "no walltime"
                                                 : absl::StrCat("walltime ", FormatDuration(*e.walltime)));
    return absl::StrCat("has ", absl::StrJoin(parts, " and "), " now, says ", e.by);
  }
  std::string operator()(const OrderWaits& e) {
    const std::string verb = ToString(e.order.verb);
    if (!e.waits) return absl::StrCat("the ", verb, " that waited is not carried out: ", e.why);
    return absl::StrCat(verb, e.order.target.empty() ? "" : absl::StrCat(" to ", Join(e.order.target)),
                        ", asked for by ", e.by, ", waits until its work has been saved, and until ",
                        FormatTime(e.until), " at the latest");
  }
  std::string operator()(const Noted& e) { return e.text; }
  std::string operator()(const JobsForgotten& e) {
    return absl::StrCat(e.jobs.size(), e.jobs.size() == 1 ? " job that" : " jobs that",
                        " ended long ago left the records");
  }
  std::string operator()(const JournalRestored& e) {
    return absl::StrCat("the journal is a copy that was put back; it knew of nothing after event ", e.copied,
                        "; new jobs begin with ", e.last_job.value() + 1);
  }
};

struct Orderer {
  template <class Body>
  std::string operator()(const Body& body) const {
    if constexpr (requires { body.by; }) {
      return body.by;
    } else {
      return "";
    }
  }
};

}  // namespace

std::string ToString(HandVerb verb) { return kVerbs[static_cast<int>(verb)]; }

std::optional<HandVerb> ParseHandVerb(const std::string& name) {
  for (size_t i = 0; i < std::size(kVerbs); ++i) {
    if (kVerbs[i] == name) return static_cast<HandVerb>(i);
  }
  return std::nullopt;
}

std::string KindOf(const Event& event) { return std::visit(Kind(), event.body); }
std::set<std::string> AllEventKinds() {
  std::set<std::string> kinds;
  for (const EventBody& body : Examples(std::make_index_sequence<std::variant_size_v<EventBody>>()))
    kinds.insert(std::visit(Kind(), body));
  return kinds;
}
std::string ByWhom(const Event& event) { return std::visit(Orderer(), event.body); }
std::string Describe(const Event& event) { return std::visit(Words(), event.body); }

}  // namespace siding
