#include "controller/platform/kubernetes/watch/job_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "controller/platform/kubernetes/objects/marks.h"

namespace siding::kubernetes {
namespace {

// Nobody: users of the cluster are no users of this machine.
constexpr uint32_t kNobody = 65534;

// A mark that cannot be read is none: the pod gets another one.
std::optional<int64_t> WholeMark(const Pod& pod, const char* mark, int64_t most) {
  const auto said = pod.said.find(mark);
  int64_t value = 0;
  if (said == pod.said.end() || !absl::SimpleAtoi(said->second, &value) || value < 1 || value > most)
    return std::nullopt;
  return value;
}

std::optional<JobId> NumberOf(const Pod& pod) {
  const auto number = WholeMark(pod, kJobMark, std::numeric_limits<uint32_t>::max());
  return number ? std::optional(JobId(*number)) : std::nullopt;
}

bool IsOver(const Pod& pod) { return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed; }

bool WaitsForSiding(const Pod& pod) {
  return pod.scheduler == kScheduler ||
         std::find(pod.gates.begin(), pod.gates.end(), kGate) != pod.gates.end();
}

bool HasOthersGates(const Pod& pod) {
  return std::any_of(pod.gates.begin(), pod.gates.end(),
                     [](const std::string& gate) { return gate != kGate; });
}

// Pods that are numbered by their owner, or by their user: a-2 before a-10.
bool IsBefore(const Pod* a, const Pod* b) {
  return std::pair(a->name.name.size(), a->name) < std::pair(b->name.name.size(), b->name);
}

Resources MostOf(Resources a, const Resources& b) {
  return {std::max(a.slots, b.slots), std::max(a.memory, b.memory), std::max(a.gpus, b.gpus)};
}

// Whatever somebody wrote into a pod, sums stay in range.
template <class Number>
Number Sum(Number a, Number b) {
  Number sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<Number>::max() : sum;
}
Resources Sum(const Resources& a, const Resources& b) {
  return {Sum(a.slots, b.slots), Bytes{Sum(a.memory.value, b.memory.value)}, Sum(a.gpus, b.gpus)};
}

Resources LeftOf(const Resources& all, const Resources& taken) {
  return {std::max(0, all.slots - taken.slots), std::max(Bytes{0}, all.memory - taken.memory),
          std::max(0, all.gpus - taken.gpus)};
}

}  // namespace

void JobTable::OnPods(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    std::string said;
    if (change.before) {
      const auto known = pods_.find(change.before->name);
      if (known != pods_.end() && change.after && known->second.pod.uid == change.after->uid)
        said = known->second.refused;
      Drop(change.before->name);
    }
    if (change.after) Put(PodFrom(*change.after), said);
  }
}

void JobTable::OnNodes(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    const std::string& name = (change.after ? change.after : change.before)->name.name;
    changed_nodes_.insert(name);
    if (change.after) {
      nodes_[name] = NodeFrom(*change.after);
    } else {
      nodes_.erase(name);
    }
  }
}

void JobTable::Put(const Pod& pod, const std::string& said) {
  Entry entry{.pod = pod};
  absl::StatusOr<std::optional<Ask>> ask = AskOf(pod);
  const std::string why = !ask.ok() ? std::string(ask.status().message()) : *ask ? WhyNot(pod, **ask) : "";
  if (!why.empty()) {
    if (why != said) refusals_.push_back({pod.name, pod.uid, why});
    entry.refused = why;
  } else if (ask.ok() && *ask) {
    entry.ask = **ask;
    if (is_ours_(pod)) entry.number = NumberOf(pod);
  }
  if (entry.number) {
    jobs_[*entry.number].insert(pod.name);
    changed_jobs_.insert(*entry.number);
  }
  if (HoldsNode(pod)) {
    on_nodes_[pod.node].insert(pod.name);
    if (!entry.number) changed_nodes_.insert(pod.node);
  }
  pods_.insert_or_assign(pod.name, std::move(entry));
}

void JobTable::Drop(const ObjectName& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return;
  const std::string& node = found->second.pod.node;
  if (const auto on = on_nodes_.find(node); on != on_nodes_.end() && on->second.erase(name) > 0) {
    if (!found->second.number) changed_nodes_.insert(node);
    if (on->second.empty()) on_nodes_.erase(on);
  }
  if (const auto number = found->second.number) {
    changed_jobs_.insert(*number);
    const auto job = jobs_.find(*number);
    job->second.erase(name);
    if (job->second.empty()) jobs_.erase(job);
  }
  pods_.erase(found);
}

std::string JobTable::WhyNot(const Pod& pod, const Ask& ask) const {
  if (left_alone_.contains(pod.name.space))
    return absl::StrCat("siding leaves pods of the namespace ", pod.name.space, " alone");
  if (!pod.problem.empty()) return pod.problem;
  if (!ask.start_by && !ask.methods.Has(Method::kKill))
    return absl::StrCat(kPrefix,
                        "preemptible: expected kill among its methods: pods can only be evicted as yet");
  if (!ask.start_by) return "";
  if (!WaitsForSiding(pod) && pod.node.empty())
    return absl::StrCat("siding.dev/start-by: expected schedulerName: ", kScheduler,
                        ", or the scheduling gate ", kGate, ": another scheduler would choose its node");
  std::vector<std::string> not_planned = pod.placement.not_planned;
  for (const auto& [name, amount] : pod.requests.others) not_planned.push_back(name);
  if (not_planned.empty()) return "";
  return absl::StrCat("siding.dev/start-by: expected nothing that siding does not plan with, as is ",
                      absl::StrJoin(not_planned, ", "));
}

Resources JobTable::TakenOf(const std::string& node, bool by_jobs_too) const {
  Resources taken{0, Bytes{0}, 0};
  const auto on = on_nodes_.find(node);
  if (on == on_nodes_.end()) return taken;
  for (const ObjectName& name : on->second) {
    const Entry& entry = pods_.at(name);
    if (by_jobs_too || !entry.number) taken = Sum(taken, ToResources(entry.pod.requests));
  }
  return taken;
}

bool JobTable::HasRoom(const std::string& node, const Pod& pod) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const auto on = on_nodes_.find(node);
  const int pods = on == on_nodes_.end() ? 0 : static_cast<int>(on->second.size());
  const Resources with = Sum(TakenOf(node, true), ToResources(pod.requests));
  return pods < found->second.most_pods && ToResources(found->second.allocatable).Covers(with);
}

std::vector<JobId> JobTable::Jobs() const {
  std::vector<JobId> jobs;
  for (const auto& [number, pods] : jobs_) jobs.push_back(number);
  return jobs;
}

ManagerChanges JobTable::TakeChanges() {
  ManagerChanges changes;
  for (const JobId number : std::exchange(changed_jobs_, {})) {
    const auto job = jobs_.find(number);
    if (job == jobs_.end()) {
      changes.gone_jobs.push_back(number);
    } else {
      changes.jobs.push_back(JobOf(number));
    }
  }
  for (const std::string& name : std::exchange(changed_nodes_, {})) {
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) {
      changes.gone_nodes.emplace_back(name);
    } else {
      changes.nodes.push_back(NodeOf(node->second));
    }
  }
  return changes;
}

std::vector<Refusal> JobTable::TakeRefusals() { return std::exchange(refusals_, {}); }

std::vector<const Pod*> JobTable::PodsOf(JobId job) const {
  std::vector<const Pod*> pods;
  if (const auto members = jobs_.find(job); members != jobs_.end()) {
    for (const ObjectName& name : members->second) {
      const Pod& pod = pods_.at(name).pod;
      if (!pod.deleting && !IsOver(pod)) pods.push_back(&pod);
    }
  }
  std::sort(pods.begin(), pods.end(), IsBefore);
  return pods;
}

// While pods that made way end, and others come in their places, it is the new ones that count.
std::vector<const Pod*> JobTable::PodsThatCount(JobId job) const {
  std::vector<const Pod*> pods = PodsOf(job);
  const auto members = jobs_.find(job);
  if (!pods.empty() || members == jobs_.end()) return pods;
  for (const ObjectName& name : members->second) pods.push_back(&pods_.at(name).pod);
  std::sort(pods.begin(), pods.end(), IsBefore);
  return pods;
}

std::vector<PodTask> JobTable::Tasks() const {
  std::vector<PodTask> tasks;
  for (const auto& [number, members] : jobs_) {
    const ManagedJob job = JobOf(number);
    if (job.spec.methods.empty()) continue;
    int rank = 0;
    for (const Pod* pod : PodsThatCount(number)) {
      PodTask task{TaskId{number, job.starts, rank++},
                   NodeId(pod->node),
                   pod->name,
                   pod->uid,
                   pod->started,
                   {},
                   job.spec};
      if (IsOver(*pod)) task.succeeded = pod->phase == PodPhase::kSucceeded;
      if (!pod->node.empty()) tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

ManagedJob JobTable::JobOf(JobId number) const {
  const std::vector<const Pod*> pods = PodsThatCount(number);
  ManagedJob job;
  job.id = number;
  const bool any_live =
      std::any_of(pods.begin(), pods.end(), [](const Pod* pod) { return !pod->deleting && !IsOver(*pod); });
  const Entry& first = pods_.at(pods.front()->name);
  const auto all = [&](auto is) {
    return std::all_of(pods.begin(), pods.end(), [&](const Pod* pod) { return is(*pod); });
  };
  const bool is_whole = static_cast<int>(pods.size()) >= first.ask->gang_size;
  const bool have_nodes = all([](const Pod& pod) { return !pod.node.empty(); });
  if (any_live) {
    job.phase = is_whole && have_nodes ? ManagedPhase::kRunning : ManagedPhase::kWaiting;
  } else {
    job.phase = all(IsOver) ? ManagedPhase::kOver : ManagedPhase::kEnding;
  }
  job.may_start =
      is_whole && std::none_of(pods.begin(), pods.end(), [](const Pod* pod) { return HasOthersGates(*pod); });
  job.succeeded = all([](const Pod& pod) { return pod.phase == PodPhase::kSucceeded; });
  if (all([](const Pod& pod) { return pod.started.has_value(); })) job.started = pods.front()->started;
  job.spec.per_node = {0, Bytes{0}, 0};
  for (const Pod* pod : pods) {
    if (job.phase != ManagedPhase::kWaiting && !pod->node.empty()) job.nodes.emplace_back(pod->node);
    job.submitted = std::max(job.submitted, pod->created);
    if (job.started) job.started = std::max(*job.started, *pod->started);
    job.starts = std::max(job.starts, static_cast<int>(WholeMark(*pod, kStartsMark, 1'000'000).value_or(1)));
    job.spec.per_node = MostOf(job.spec.per_node, ToResources(pod->requests));
  }
  job.state = is_whole ? std::string(ToString(first.pod.phase))
                       : absl::StrCat(pods.size(), " of ", first.ask->gang_size, " pods are there");
  const Ask& ask = *first.ask;
  JobSpec& spec = job.spec;
  spec.name = ask.gang.empty() ? first.pod.name.name : ask.gang;
  spec.uid = spec.gid = kNobody;
  spec.user = first.pod.name.space;
  spec.cluster_manager = kKubernetes;
  spec.nodes = ask.gang_size;
  spec.priority = first.pod.priority;
  spec.methods = ask.methods;
  spec.kill_grace = first.pod.grace;
  spec.notice = ask.notice;
  spec.checkpoint_interval = ask.checkpoint_interval;
  spec.max_preemptions = ask.max_preemptions;
  spec.labels = {{kPodLabel, ToString(first.pod.name)}, {"namespace", first.pod.name.space}};
  if (!first.pod.owner.kind.empty())
    spec.labels["owner"] = absl::StrCat(first.pod.owner.kind, "/", first.pod.owner.name);
  if (ask.start_by) {
    spec.kind = JobKind::kOnDemand;
    spec.start_by = *ask.start_by;
    spec.not_before = ask.not_before.value_or(Time{});
    spec.hold = ask.walltime;
  }
  return job;
}

ManagedNode JobTable::NodeOf(const Node& node) const {
  const std::string& name = node.object.name.name;
  ManagedNode managed{NodeId(name), LeftOf(ToResources(node.allocatable), TakenOf(name, false)),
                      node.ready && !node.cordoned, ""};
  managed.why = !node.ready ? node.why_not_ready : node.cordoned ? "cordoned" : "";
  return managed;
}

JobTable::Without JobTable::FindUnnumbered() const {
  Without found;
  if (!jobs_.empty()) found.highest = jobs_.rbegin()->first;
  std::vector<const Entry*> without;
  std::map<std::pair<std::string, std::string>, JobId> gangs;  // by namespace and name: the newest of each
  std::set<JobId> ending;  // a pod that comes in the place of one that is leaving is of another job
  for (const auto& [name, entry] : pods_) {
    if (!entry.ask) continue;
    const bool leaves = entry.pod.deleting || IsOver(entry.pod);
    if (!entry.number) {
      if (!leaves) without.push_back(&entry);
    } else if (leaves) {
      ending.insert(*entry.number);
    } else if (!entry.ask->gang.empty()) {
      JobId& newest = gangs[std::pair(name.space, entry.ask->gang)];
      newest = std::max(newest, *entry.number);
    }
  }
  std::sort(without.begin(), without.end(), [](const Entry* a, const Entry* b) {
    return std::tuple(a->pod.created, a->pod.name) < std::tuple(b->pod.created, b->pod.name);
  });
  for (const Entry* entry : without) {
    Unnumbered one{entry->pod.name, entry->pod.uid, entry->pod.version, entry->ask->gang, std::nullopt};
    const auto gang = gangs.find({entry->pod.name.space, entry->ask->gang});
    if (gang != gangs.end() && !ending.contains(gang->second)) one.gang = gang->second;
    found.pods.push_back(std::move(one));
  }
  return found;
}

std::optional<std::set<NodeId>> JobTable::NodesFor(const JobSpec& job) const {
  const auto label = job.labels.find(kPodLabel);
  if (label == job.labels.end()) return std::nullopt;
  const size_t slash = label->second.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const Pod* pod = Find({label->second.substr(0, slash), label->second.substr(slash + 1)});
  if (pod == nullptr) return std::nullopt;
  std::set<NodeId> nodes;
  for (const auto& [name, node] : nodes_) {
    std::vector<Taint> taints = node.taints;
    // siding's own keep others off.
    std::erase_if(taints, [](const Taint& taint) { return absl::StartsWith(taint.key, kPrefix); });
    if (WhyNotThere(pod->placement, name, node.labels, taints).empty()) nodes.insert(NodeId(name));
  }
  return nodes;
}

const Pod* JobTable::Find(const ObjectName& name) const {
  const auto found = pods_.find(name);
  return found == pods_.end() ? nullptr : &found->second.pod;
}

}  // namespace siding::kubernetes
