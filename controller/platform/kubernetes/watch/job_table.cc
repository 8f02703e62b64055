#include "controller/platform/kubernetes/watch/job_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "controller/platform/kubernetes/objects/marks.h"
#include "controller/platform/kubernetes/objects/saving.h"

namespace siding::kubernetes {
namespace {

// Nobody: users of the cluster are no users of this machine.
constexpr uint32_t kNobody = 65534;

// A mark that cannot be read is none: the pod gets another one.
std::optional<int64_t> WholeMark(const Pod& pod, const char* mark, int64_t most) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(SaidBy(pod, mark), &value) || value < 1 || value > most) return std::nullopt;
  return value;
}

std::optional<JobId> NumberOf(const Pod& pod) {
  const auto number = WholeMark(pod, kJobMark, std::numeric_limits<uint32_t>::max());
  return number ? std::optional(JobId(*number)) : std::nullopt;
}

int StartsOf(const Pod& pod) { return static_cast<int>(WholeMark(pod, kStartsMark, 1'000'000).value_or(1)); }

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

Resources LeftOf(const Resources& all, const Resources& taken) {
  return {std::max(0, all.slots - taken.slots), std::max(Bytes{0}, all.memory - taken.memory),
          std::max(0, all.gpus - taken.gpus)};
}

// siding's own keep others off.
std::vector<Taint> OthersTaints(const Node& node) {
  std::vector<Taint> taints = node.taints;
  std::erase_if(taints, [](const Taint& taint) { return absl::StartsWith(taint.key, kPrefix); });
  return taints;
}

}  // namespace

void JobTable::OnPods(const std::vector<ObjectChange>& changes) {
  for (const ObjectChange& change : changes) {
    std::optional<Entry> before;
    if (change.before) {
      const auto known = pods_.find(change.before->name);
      if (known != pods_.end() && change.after && known->second.pod.uid == change.after->uid)
        before = known->second;
      Drop(change.before->name);
    }
    if (change.after) Put(PodFrom(*change.after), before ? &*before : nullptr);
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

void JobTable::OnNodeWritten(const std::string& name) {
  const auto node = nodes_.find(name);
  if (node != nodes_.end()) node->second.outdated = true;
}

void JobTable::OnNodeRead(const Object& object) {
  const auto node = nodes_.find(object.name.name);
  if (node != nodes_.end() && node->second.object.version == object.version) node->second.outdated = false;
}

void JobTable::OnBudgets(const std::vector<ObjectChange>& changes) {
  std::set<std::string> spaces;
  for (const ObjectChange& change : changes) {
    const ObjectName& name = (change.after ? change.after : change.before)->name;
    spaces.insert(name.space);
    if (change.after) {
      budgets_[name] = BudgetFrom(*change.after);
    } else {
      budgets_.erase(name);
    }
  }
  for (const auto& [job, pods] : jobs_) {
    if (spaces.contains(pods.begin()->space)) changed_jobs_.insert(job);
  }
}

void JobTable::AddAllowances(const Pod& pod, ManagedJob& job) const {
  if (pod.deleting || !IsReady(pod)) return;
  for (auto budget = budgets_.lower_bound({pod.name.space, ""});
       budget != budgets_.end() && budget->first.space == pod.name.space; ++budget) {
    if (!Covers(budget->second, pod)) continue;
    const std::string name = absl::StrCat("the disruption budget ", ToString(budget->first));
    const auto known = std::find_if(job.allowances.begin(), job.allowances.end(),
                                    [&](const Allowance& one) { return one.name == name; });
    if (known != job.allowances.end()) {
      ++known->takes;
    } else {
      job.allowances.push_back({name, 1, budget->second.lets_go});
    }
  }
}

void JobTable::OnNext(std::map<JobId, DesiredState::Next> next) {
  // The pods of others are not followed by ones that go on.
  std::erase_if(next, [](const auto& one) { return !one.second.labels.contains(kOwnerUidLabel); });
  bool others = false;  // go on
  for (const auto* one : {&next, &next_}) {
    const auto& other = one == &next ? next_ : next;
    for (const auto& [job, how] : *one) {
      if (other.contains(job)) continue;
      changed_jobs_.insert(job);
      others = true;
    }
  }
  next_ = std::move(next);
  next_known_ = true;
  if (others) TakeHeirs();
  std::erase_if(ownerless_, [this](JobId job) { return !next_.contains(job); });
  std::erase_if(starts_, [this](const auto& given) { return !next_.contains(given.first); });
  // Pods that the cluster has ended stay, and may have been seen before it was known that their job goes on.
  for (const auto& [job, how] : next_) {
    const auto had = jobs_.find(job);
    if (had == jobs_.end()) continue;
    for (const ObjectName& name : had->second) NoteStart(job, pods_.at(name).pod);
  }
}

// Those that came before it was known what they go on with.
void JobTable::TakeHeirs() {
  std::vector<Entry> refused;
  for (const auto& [name, entry] : pods_) {
    if (!entry.refused.empty() && !entry.not_saved.empty()) refused.push_back(entry);
  }
  for (const Entry& entry : refused) {
    Drop(entry.pod.name);
    Put(entry.pod, &entry);
  }
}

void JobTable::NoteStart(JobId job, const Pod& pod) {
  int& given = starts_[job];
  given = std::max(given, StartsOf(pod));
}

void JobTable::OnOwnerGone(JobId job) {
  if (next_.contains(job) && ownerless_.insert(job).second) changed_jobs_.insert(job);
}

std::vector<Orphan> JobTable::Orphans() const {
  std::vector<Orphan> orphans;
  for (const auto& [job, next] : next_) {
    if (!WaitsForNextPod(job)) continue;
    const auto label = [&, &labels = next.labels](const char* name) {
      const auto found = labels.find(name);
      return found == labels.end() ? "" : found->second;
    };
    const std::pair<std::string, std::string> owner =
        absl::StrSplit(label(kOwnerLabel), absl::MaxSplits('/', 1));
    orphans.push_back({job, {label("namespace"), owner.second}, owner.first, label(kOwnerUidLabel)});
  }
  return orphans;
}

void JobTable::Put(const Pod& pod, const Entry* before) {
  Entry entry{.pod = pod};
  if (saves_) entry.not_saved = WhyNotSaved(pod, host_paths_);
  absl::StatusOr<std::optional<Ask>> ask = AskOf(pod);
  std::string why = !ask.ok() ? std::string(ask.status().message()) : *ask ? WhyNot(entry, **ask) : "";
  if (why.empty()) why = WhyNobodyPlaces(pod, *ask);
  if (!why.empty() && (before == nullptr || why != before->refused))
    refusals_.push_back({pod.name, pod.uid, why});
  entry.refused = why;
  if (ask.ok() && *ask && why.empty()) {
    entry.ask = **ask;
    if (is_ours_(pod)) entry.number = NumberOf(pod);
    if (entry.number && next_.contains(*entry.number)) NoteStart(*entry.number, pod);
  } else if (ask.ok() && !*ask) {
    if (is_ours_(pod)) entry.left = NumberOf(pod);
    if (!entry.left && before != nullptr) entry.left = before->number ? before->number : before->left;
  }
  // One that is being deleted, or that the cluster has ended, does not run on.
  if (entry.left && !pod.deleting && !pod.disrupted) {
    left_[*entry.left].insert(pod.name);
    changed_jobs_.insert(*entry.left);
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
  if (const auto job = found->second.left; job && left_.contains(*job)) {
    left_[*job].erase(name);
    if (left_[*job].empty()) left_.erase(*job);
    changed_jobs_.insert(*job);
  }
  if (const auto number = found->second.number) {
    changed_jobs_.insert(*number);
    const auto job = jobs_.find(*number);
    job->second.erase(name);
    if (job->second.empty()) jobs_.erase(job);
  }
  pods_.erase(found);
}

std::string JobTable::WhyNot(const Entry& entry, const Ask& ask) const {
  const Pod& pod = entry.pod;
  if (left_alone_.contains(pod.name.space))
    return absl::StrCat("siding leaves pods of the namespace ", pod.name.space, " alone");
  if (!pod.problem.empty()) return pod.problem;
  const std::string not_saved = !saves_             ? "pods are only evicted in this cluster"
                                : !ask.gang.empty() ? "it belongs to a gang"
                                                    : entry.not_saved;
  // One that is a job already stays it, though its owner be gone.
  const bool is_job = NumberOf(pod) && is_ours_(pod);
  const bool cannot = !ask.start_by && !is_job && !ask.methods.Has(Method::kKill) && !not_saved.empty();
  // What it goes on with is not lost because of what may be in it now.
  if (cannot && !Heritages().contains(HeritageOf(pod, ask)))
    return absl::StrCat(kPrefix, "preemptible: expected kill among its methods: it cannot be saved, for ",
                        not_saved);
  if (!ask.start_by) return "";
  if (!is_job && *ask.start_by <= pod.created)
    return absl::StrCat(kPrefix, "start-by: expected a time after its pod was made, which was at ",
                        FormatTime(pod.created));
  // One that siding has let go itself has no gate any more, until its scheduler has bound it.
  return std::string(CheckDeadline(pod, is_job).message());
}

// It would wait for ever.
std::string JobTable::WhyNobodyPlaces(const Pod& pod, const std::optional<Ask>& ask) {
  const bool waits = pod.node.empty() && !pod.deleting && !IsOver(pod) && WaitsForSiding(pod);
  if (!waits || (ask && ask->start_by)) return "";
  return absl::StrCat("it waits for siding (schedulerName: ", kScheduler, ", or the scheduling gate ", kGate,
                      "), which places pods with ", kPrefix, "start-by alone: expected that annotation");
}

Amounts JobTable::TakenOf(const std::string& node, bool by_jobs_too) const {
  Amounts taken;
  const auto on = on_nodes_.find(node);
  if (on == on_nodes_.end()) return taken;
  for (const ObjectName& name : on->second) {
    const Entry& entry = pods_.at(name);
    if (by_jobs_too || !entry.number) taken = taken + entry.pod.requests;
  }
  return taken;
}

bool JobTable::HasRoom(const std::string& node, const Pod& pod, const Promised& beside) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const auto on = on_nodes_.find(node);
  const int pods = beside.pods + (on == on_nodes_.end() ? 0 : static_cast<int>(on->second.size()));
  const Resources with = ToResources(TakenOf(node, true) + beside.requests + pod.requests);
  return pods < found->second.most_pods && ToResources(found->second.allocatable).Covers(with);
}

bool JobTable::IsUsable(const Node& node) { return node.ready && !node.cordoned && node.problem.empty(); }

bool JobTable::MayBeOn(const std::string& node, const Pod& pod) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || !IsUsable(found->second)) return false;
  return WhyNotThere(pod.placement, node, found->second.labels, OthersTaints(found->second)).empty();
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
    if (WaitsForNextPod(number)) {
      changes.jobs.push_back(JobWithoutPods(number, next_.at(number)));
    } else if (job == jobs_.end()) {
      changes.gone_jobs.push_back(number);
    } else {
      changes.jobs.push_back(JobOf(number, PodsThatCount(number)));
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
  // Those that the cluster has ended stay for as long as their owner does.
  int last = 0;
  for (const ObjectName& name : members->second) last = std::max(last, StartsOf(pods_.at(name).pod));
  for (const ObjectName& name : members->second) {
    const Pod& pod = pods_.at(name).pod;
    if (StartsOf(pod) == last) pods.push_back(&pod);
  }
  std::sort(pods.begin(), pods.end(), IsBefore);
  return pods;
}

std::vector<PodTask> JobTable::Tasks() const {
  std::vector<PodTask> tasks;
  for (const auto& [number, members] : jobs_) {
    const std::vector<const Pod*> pods = PodsThatCount(number);
    const ManagedJob job = JobOf(number, pods);
    if (job.spec.methods.empty()) continue;
    int rank = 0;
    for (const Pod* pod : pods) AddTask(job, *pod, {number, job.starts, rank++}, tasks);
    if (!next_.contains(number)) continue;
    // Those that still end while another has come in their place, or is to come.
    for (const ObjectName& name : members) {
      const Pod& pod = pods_.at(name).pod;
      if (std::find(pods.begin(), pods.end(), &pod) == pods.end())
        AddTask(job, pod, {number, StartsOf(pod), 0}, tasks);
    }
  }
  return tasks;
}

void JobTable::AddTask(const ManagedJob& job, const Pod& pod, const TaskId& id,
                       std::vector<PodTask>& tasks) const {
  if (pod.node.empty()) return;
  PodTask task{.id = id,
               .node = NodeId(pod.node),
               .pod = pod.name,
               .uid = pod.uid,
               .started = pod.started,
               .spec = job.spec};
  // Until it is known which jobs go on, one that could is not over because of its pod.
  const bool undecided = !next_known_ && !LabelsOf(pods_.at(pod.name)).empty();
  const bool goes_on = undecided || next_.contains(id.job);
  task.disrupted = pod.disrupted && goes_on;
  task.failed_deleted = pod.deleting && pod.phase == PodPhase::kFailed && !pod.disrupted && goes_on;
  if (IsOver(pod) && !task.was_ended()) task.succeeded = pod.phase == PodPhase::kSucceeded;
  task.leaves = pod.deleting.has_value();
  task.not_saved = job.spec.nodes > 1 ? "it belongs to a gang" : pods_.at(pod.name).not_saved;
  const auto next = next_.find(id.job);
  // It is the first pod; or what it was to go on with came to its end when the pod had its number already,
  // and this is another piece of work of the same owner.
  if (id.incarnation == 1 || (next == next_.end() && next_known_)) {
    task.next.how = DesiredState::Next::How::kBeginning;
  } else if (next != next_.end() && next->second.starts < id.incarnation) {
    task.next = next->second;
  } else if (next != next_.end()) {
    task.start_is_over = next->second.how != DesiredState::Next::How::kNotYet;
  }
  tasks.push_back(std::move(task));
}

ManagedJob JobTable::JobOf(JobId number, const std::vector<const Pod*>& pods) const {
  ManagedJob job;
  job.id = number;
  job.can_be_pinned = false;
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
    job.phase = IsOverWithPods(number) ? ManagedPhase::kOver : ManagedPhase::kEnding;
  }
  job.may_start =
      is_whole && std::none_of(pods.begin(), pods.end(), [](const Pod* pod) { return HasOthersGates(*pod); });
  job.succeeded = all([](const Pod& pod) { return pod.phase == PodPhase::kSucceeded; });
  if (all([](const Pod& pod) { return pod.started.has_value(); })) job.started = pods.front()->started;
  job.spec.per_node = {0, Bytes{0}, 0};
  for (const Pod* pod : pods) {
    if (job.phase != ManagedPhase::kWaiting && !pod->node.empty()) job.nodes.emplace_back(pod->node);
    job.submitted = std::max(job.submitted, pod->created);
    AddAllowances(*pod, job);
    if (job.started) job.started = std::max(*job.started, *pod->started);
    job.starts = std::max(job.starts, StartsOf(*pod));
    job.spec.per_node = MostOf(job.spec.per_node, ToResources(pod->requests));
  }
  for (const Allowance& one : job.allowances) {
    if (one.left == 0) job.kept_by = absl::StrCat(one.name, " lets none of its pods go");
    if (one.left > 0 && one.takes > one.left)
      job.kept_by = absl::StrCat(one.name, " lets ", one.left, " of its pods go, and this takes ", one.takes);
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
  spec.checkpoint_interval = ask.checkpoint_interval;
  spec.max_preemptions = ask.max_preemptions;
  spec.labels = {{kPodLabel, ToString(first.pod.name)}, {"namespace", first.pod.name.space}};
  if (!first.pod.owner.kind.empty())
    spec.labels[kOwnerLabel] = absl::StrCat(first.pod.owner.kind, "/", first.pod.owner.name);
  spec.labels.merge(LabelsOf(first));
  if (ask.start_by) {
    spec.kind = JobKind::kOnDemand;
    spec.start_by = *ask.start_by;
    spec.not_before = ask.not_before.value_or(Time{});
    spec.hold = ask.walltime;
  }
  return job;
}

std::vector<PlainPod> JobTable::PlainPods() const {
  std::vector<PlainPod> plain;
  if (!saves_) return plain;
  for (const auto& [name, entry] : pods_) {
    const Pod& pod = entry.pod;
    const bool is_task = entry.number && !entry.ask->methods.empty();
    if (!HoldsNode(pod) || is_task || !IsOfRuntimeClass(pod)) continue;
    const bool will_be = entry.ask && !entry.ask->methods.empty() && !pod.deleting;
    const bool may_be = !next_known_ && !entry.refused.empty() && !entry.not_saved.empty();
    plain.push_back({NodeId(pod.node), name, pod.uid, !will_be && !may_be});
  }
  return plain;
}

// It is wanted no more where it is, or the cluster has ended it, and its owner makes another: that it has
// failed says nothing of its work.
bool JobTable::IsBeingReplaced(JobId number, const Pod& pod) const {
  return next_.contains(number) &&
         ((pod.deleting && pod.phase != PodPhase::kSucceeded) || (pod.disrupted && !HasNoNext(number)));
}

bool JobTable::IsOverWithPods(JobId number) const {
  const std::vector<const Pod*> pods = PodsThatCount(number);
  return !pods.empty() && std::all_of(pods.begin(), pods.end(), [&](const Pod* pod) {
    return IsOver(*pod) && !IsBeingReplaced(number, *pod);
  });
}

bool JobTable::WaitsForNextPod(JobId number) const {
  const std::vector<const Pod*> pods = PodsThatCount(number);
  return next_.contains(number) && !HasNoNext(number) &&
         std::all_of(pods.begin(), pods.end(), [](const Pod* pod) { return pod->disrupted; });
}

ManagedJob JobTable::JobWithoutPods(JobId number, const DesiredState::Next& next) const {
  ManagedJob job;
  job.id = number;
  job.starts = next.starts;
  job.can_be_pinned = false;
  job.state = "its owner is to make its next pod";
  job.spec.cluster_manager = kKubernetes;
  job.spec.labels = next.labels;
  return job;
}

std::map<std::string, std::string> JobTable::HeritageOf(const Pod& pod, const Ask& ask) const {
  const bool may_go_on =
      saves_ && IsOfRuntimeClass(pod) && !pod.owner.uid.empty() && ask.gang.empty() && !ask.start_by;
  if (!may_go_on) return {};
  std::map<std::string, std::string> labels = {{kOwnerUidLabel, pod.owner.uid}};
  if (const std::string place = PlaceOf(pod); !place.empty()) labels[kPlaceLabel] = place;
  return labels;
}

// A job that has something to go on with keeps it where its pod cannot be saved any more.
std::map<std::string, std::string> JobTable::LabelsOf(const Entry& entry) const {
  const bool goes_on =
      entry.not_saved.empty() || (entry.number && (!next_known_ || next_.contains(*entry.number)));
  return goes_on ? HeritageOf(entry.pod, *entry.ask) : std::map<std::string, std::string>();
}

ManagedNode JobTable::NodeOf(const Node& node) const {
  const std::string& name = node.object.name.name;
  ManagedNode managed{NodeId(name), LeftOf(ToResources(node.allocatable), ToResources(TakenOf(name, false))),
                      IsUsable(node), ""};
  managed.why = !node.ready ? node.why_not_ready : node.cordoned ? "cordoned" : node.problem;
  return managed;
}

JobTable::Without JobTable::FindUnnumbered() const {
  Without found;
  if (!jobs_.empty()) found.highest = jobs_.rbegin()->first;
  std::vector<const Entry*> without;
  std::map<std::pair<std::string, std::string>, JobId> gangs;  // by namespace and name: the newest of each
  std::set<JobId> ending;  // a pod that comes in the place of one that is leaving is of another job
  for (const auto& [name, entry] : pods_) {
    if (!entry.ask) {
      // It runs on with its number, and has it again when its user lets it ask again.
      const std::optional<JobId> marked = is_ours_(entry.pod) ? NumberOf(entry.pod) : std::nullopt;
      const std::optional<JobId> had = entry.left ? entry.left : marked;
      if (had) found.highest = std::max(found.highest, *had);
      continue;
    }
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
  std::map<std::map<std::string, std::string>, std::vector<JobId>> heritages = Heritages();
  std::map<std::pair<std::string, std::string>, size_t> coming;  // to gangs, in this call
  for (const Entry* entry : without) {
    Unnumbered one{entry->pod.name, entry->pod.uid, entry->pod.version, entry->ask->gang, {}, {}};
    if (const auto heritage = heritages.find(HeritageOf(entry->pod, *entry->ask));
        heritage != heritages.end() && !heritage->second.empty()) {
      one.heir = heritage->second.back();
      const auto given = starts_.find(*one.heir);
      one.starts = std::max(next_.at(*one.heir).starts, given == starts_.end() ? 0 : given->second) + 1;
      heritage->second.pop_back();
    }
    const std::pair<std::string, std::string> name(entry->pod.name.space, entry->ask->gang);
    const auto gang = gangs.find(name);
    if (gang != gangs.end() && !ending.contains(gang->second)) one.gang = gang->second;
    if (!entry->ask->gang.empty()) {
      // Those that have its number, and those that get one now.
      const size_t members = (one.gang ? jobs_.at(*one.gang).size() : 0) + coming[name]++;
      if (members >= static_cast<size_t>(entry->ask->gang_size)) {
        found.surplus.push_back({entry->pod.name, entry->pod.uid,
                                 absl::StrCat(kPrefix, "gang-size: expected ", entry->ask->gang_size,
                                              " pods of the gang ", entry->ask->gang, ", which are there")});
        continue;
      }
    }
    found.pods.push_back(std::move(one));
  }
  return found;
}

// The jobs that go on and have no pod, by what a pod has in common with them; of each the first one last.
std::map<std::map<std::string, std::string>, std::vector<JobId>> JobTable::Heritages() const {
  std::map<std::map<std::string, std::string>, std::vector<JobId>> heritages;
  for (auto next = next_.rbegin(); next != next_.rend(); ++next) {
    const auto& [job, how] = *next;
    if (!PodsOf(job).empty() || IsOverWithPods(job) || HasNoNext(job)) continue;
    std::map<std::string, std::string> heritage;
    for (const char* name : {kOwnerUidLabel, kPlaceLabel}) {
      if (const auto label = how.labels.find(name); label != how.labels.end()) heritage.insert(*label);
    }
    if (!heritage.empty()) heritages[std::move(heritage)].push_back(job);
  }
  return heritages;
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
    if (WhyNotThere(pod->placement, name, node.labels, OthersTaints(node)).empty())
      nodes.insert(NodeId(name));
  }
  return nodes;
}

const Pod* JobTable::Find(const ObjectName& name) const {
  const auto found = pods_.find(name);
  return found == pods_.end() ? nullptr : &found->second.pod;
}

std::optional<PodStanding> JobTable::StandingOf(const ObjectName& name) const {
  const auto found = pods_.find(name);
  if (found == pods_.end()) return std::nullopt;
  return PodStanding{found->second.pod, found->second.number, found->second.refused};
}

}  // namespace siding::kubernetes
