#include "controller/platform/slurm/watch/translate.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/marks.h"
#include "controller/platform/slurm/watch/constraint.h"

namespace siding::slurm {
namespace {

// After its limit. Slurm looks at limits every 30 s; then a job has the KillWait of its configuration, 30 s
// if that does not say. Who takes longer is not waited for.
constexpr Duration kEndsWithin = std::chrono::seconds(62);

ManagedPhase PhaseOf(const QueueJob& job) {
  switch (job.phase) {
    case JobPhase::kPending:
      return ManagedPhase::kWaiting;
    case JobPhase::kEnding:
      return ManagedPhase::kEnding;
    case JobPhase::kEnded:
      return ManagedPhase::kOver;
    default:
      // Also in a state that is not known: it may hold nodes.
      return ManagedPhase::kRunning;
  }
}

JobSpec SpecOf(const QueueJob& job, const UserName& user_name) {
  JobSpec spec;
  spec.name = job.name;
  spec.uid = job.uid;
  spec.gid = job.gid;
  spec.user = user_name(job.uid);
  spec.cluster_manager = kManager;
  spec.nodes = std::max<int>({1, job.nodes, static_cast<int>(job.on.size())});
  spec.per_node.slots = (job.cpus + spec.nodes - 1) / spec.nodes;
  spec.per_node.memory = job.memory_per_node;
  spec.per_node.gpus = job.gpus_per_node;
  const auto label = [&](const char* name, const std::string& value) {
    if (!value.empty()) spec.labels[name] = value;
  };
  label("partition", job.partition);
  label("qos", job.qos);
  label("account", job.account);
  const auto start_by = StartByOf(job.comment);
  if (start_by && job.array == JobNumber()) {
    spec.kind = JobKind::kOnDemand;
    spec.start_by = *start_by;
    spec.hold = job.limit.value_or(Duration(0));
    spec.not_before = job.eligible.value_or(Time{});
    // Those that its user named; siding chooses the nodes of no job that runs or has a deadline otherwise.
    const auto mark = MarkOf(job.admin_comment);
    if (!job.only_on.empty() && !(mark && mark->pinned)) label(kNodesLabel, JoinHostlist(job.only_on));
    label(kExcludeLabel, JoinHostlist(job.not_on));
    label(kConstraintLabel, job.constraint);
    if (job.whole_nodes) label(kExclusiveLabel, "yes");
  }
  return spec;
}

ManagedJob JobOf(const QueueJob& job, const UserName& user_name) {
  ManagedJob managed;
  managed.id = JobId(job.id.value());
  managed.phase = PhaseOf(job);
  managed.spec = SpecOf(job, user_name);
  const auto mark = MarkOf(job.admin_comment);
  managed.suspended = job.phase == JobPhase::kSuspended && !(mark && mark->suspended);
  // Reservations of its user's are not planned with.
  managed.may_start = !job.held && job.eligible.has_value() &&
                      (job.reservation.empty() || absl::StartsWith(job.reservation, kReservationPrefix));
  if (managed.phase != ManagedPhase::kWaiting) managed.nodes = job.on;
  managed.submitted = job.submitted.value_or(Time{});
  managed.starts = job.restarts + 1;
  managed.started = job.started;
  if (job.ends) managed.ends_by = *job.ends + kEndsWithin;
  managed.can_be_pinned = job.array == JobNumber();
  managed.succeeded = job.state == "COMPLETED";
  managed.state = job.reason.empty() ? job.state : job.state + " (" + job.reason + ")";
  return managed;
}

ManagedNode NodeOf(const QueueNode& node) {
  return {node.id, Resources{node.cpus, node.memory, node.gpus}, node.up && !node.drained,
          node.reason.empty() ? node.state : node.state + ": " + node.reason, node.state != "unknown"};
}

Duration GraceOf(const QueueJob& job, const std::vector<Partition>& partitions) {
  const auto its = std::find_if(partitions.begin(), partitions.end(),
                                [&](const Partition& p) { return p.name == job.partition; });
  return its == partitions.end() ? Duration(0) : its->grace;
}

// Elements of an array that wait together have the first one's number, which may be a job of its own later.
bool IsJob(const QueueJob& job) { return job.array_tasks.empty(); }

// Whose labels rule out nodes: is this one left?
bool IsLeft(const Inventory::Node& node, const JobSpec& job, const absl::StatusOr<Constraint>& constraint) {
  // One that cannot be read is met by none.
  if (job.labels.contains(kConstraintLabel) && !(constraint.ok() && constraint->MetBy(node.features)))
    return false;
  return !job.labels.contains(kExclusiveLabel) || node.cpus == job.per_node.slots;
}

std::set<NodeId> NamedBy(const JobSpec& job, const char* label) {
  const auto named = job.labels.find(label);
  if (named == job.labels.end()) return {};
  const auto nodes = ExpandHostlist(named->second);
  return nodes.ok() ? std::set<NodeId>(nodes->begin(), nodes->end()) : std::set<NodeId>();
}

// Of the partitions that it may use.
std::optional<std::set<NodeId>> NodesOfPartitions(const std::vector<Partition>& partitions,
                                                  const JobSpec& job) {
  const auto label = job.labels.find("partition");
  std::vector<std::string> named;
  if (label != job.labels.end()) named = absl::StrSplit(label->second, ',');
  std::optional<std::set<NodeId>> nodes;
  for (const Partition& partition : partitions) {
    const bool its = named.empty() ? partition.is_default
                                   : std::find(named.begin(), named.end(), partition.name) != named.end();
    if (!its) continue;
    if (!nodes) nodes.emplace();
    nodes->insert(partition.nodes.begin(), partition.nodes.end());
  }
  return nodes;
}

}  // namespace

ManagerChanges ManagerChangesOf(const Changes& changes, const Inventory& inventory,
                                const UserName& user_name) {
  ManagerChanges managed;
  for (const Change<QueueJob>& change : changes.jobs) {
    if (change.after && IsJob(*change.after)) {
      managed.jobs.push_back(JobOf(*change.after, user_name));
      TakeWholeNodes(managed.jobs.back().spec, inventory);
      if (change.after->preempted) {
        managed.jobs.back().leaves_by =
            *change.after->preempted + GraceOf(*change.after, inventory.partitions);
      }
    } else if (!change.after && IsJob(*change.before)) {
      managed.gone_jobs.emplace_back(change.before->id.value());
    }
  }
  for (const Change<QueueNode>& change : changes.nodes) {
    if (change.after) {
      managed.nodes.push_back(NodeOf(*change.after));
    } else {
      managed.gone_nodes.push_back(change.before->id);
    }
  }
  return managed;
}

Inventory WithNodes(Inventory inventory, const std::vector<Change<QueueNode>>& changes) {
  for (const Change<QueueNode>& change : changes) {
    if (change.after) {
      inventory.nodes[change.after->id] = {change.after->cpus, change.after->features};
    } else {
      inventory.nodes.erase(change.before->id);
    }
  }
  return inventory;
}

std::optional<std::set<NodeId>> NodesOf(const Inventory& inventory, const JobSpec& job) {
  std::optional<std::set<NodeId>> nodes = NamedBy(job, kNodesLabel);
  if (nodes->empty()) nodes = NodesOfPartitions(inventory.partitions, job);
  if (!nodes) return nodes;
  const std::set<NodeId> excluded = NamedBy(job, kExcludeLabel);
  const auto wanted = job.labels.find(kConstraintLabel);
  const auto constraint = Constraint::Parse(wanted == job.labels.end() ? "" : wanted->second);
  std::erase_if(*nodes, [&](const NodeId& id) {
    const auto node = inventory.nodes.find(id);
    return excluded.contains(id) || (node != inventory.nodes.end() && !IsLeft(node->second, job, constraint));
  });
  return nodes;
}

void TakeWholeNodes(JobSpec& job, const Inventory& inventory) {
  if (job.kind != JobKind::kOnDemand || job.labels.erase(kExclusiveLabel) == 0) return;
  std::map<int, int> kinds;  // by CPUs: how many nodes
  for (const NodeId& id : NodesOf(inventory, job).value_or(std::set<NodeId>())) {
    const auto node = inventory.nodes.find(id);
    if (node != inventory.nodes.end() && node->second.cpus >= job.per_node.slots) ++kinds[node->second.cpus];
  }
  job.labels[kExclusiveLabel] = "yes";
  const auto most = std::max_element(kinds.begin(), kinds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != kinds.end()) job.per_node.slots = most->first;
}

std::set<NodeId> ReservedByOthers(const std::vector<Reservation>& reservations, Time now) {
  std::set<NodeId> nodes;
  for (const Reservation& reservation : reservations) {
    if (absl::StartsWith(reservation.name, kReservationPrefix)) continue;
    if (reservation.start > now + std::chrono::hours(1) || reservation.end < now) continue;
    nodes.insert(reservation.nodes.begin(), reservation.nodes.end());
  }
  return nodes;
}

}  // namespace siding::slurm
