#include "controller/platform/kubernetes/speak/pod_nodes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "controller/wire/task.h"
#include "controller/wire/wire.h"

namespace siding::kubernetes {
namespace {

using How = DesiredState::Next::How;

// What was said may have been lost with a connection.
constexpr Duration kSayAgain = std::chrono::seconds(5);
// Before a pod that could not be started is evicted, so that its owner makes another, perhaps elsewhere.
constexpr Duration kLongestPause = std::chrono::minutes(10);
constexpr int kMostDoublings = 10;
constexpr Duration kRemembered = 2 * kLongestPause;
// As of the engine's orders to this task, whose first one is larger.
constexpr int64_t kFirstOp = 1'000'000;

Duration PauseBefore(int failures) {
  return std::min<Duration>(std::chrono::seconds(1) * (1 << std::clamp(failures, 0, kMostDoublings)),
                            kLongestPause);
}

bool IsKnown(v1::TaskPhase phase) { return phase != v1::TASK_PHASE_UNSPECIFIED; }

bool Begins(v1::TaskPhase phase) { return phase == v1::LAUNCHING || phase == v1::RESTORING; }

bool CouldNotStart(v1::TaskPhase phase) { return phase == v1::RESTORE_FAILED || phase == v1::LAUNCH_FAILED; }

v1::ToAgent OrderTo(const TaskId& id) {
  v1::ToAgent command;
  *command.mutable_task() = RefOf(id);
  command.set_op(kFirstOp * id.incarnation);
  return command;
}

void SetPod(const ObjectName& name, const std::string& uid, v1::ToAgent& command) {
  command.mutable_pod()->set_space(name.space);
  command.mutable_pod()->set_name(name.name);
  command.mutable_pod()->set_uid(uid);
}

v1::ToAgent StartOf(const PodTask& pod) {
  v1::ToAgent command = OrderTo(pod.id);
  SetPod(pod.pod, pod.uid, command);
  if (pod.next.how == How::kBeginning) {
    *command.mutable_launch()->mutable_spec() = ToProto(pod.spec);
    return command;
  }
  v1::Restore& restore = *command.mutable_restore();
  *restore.mutable_spec() = ToProto(pod.spec);
  restore.set_checkpoint(pod.next.checkpoint.value());
  restore.set_tier(ToProto(pod.next.tier));
  restore.set_image_incarnation(pod.next.incarnation);
  restore.set_image_digest(pod.next.digest);
  return command;
}

// `succeeded`: nothing where the pod is not there any more.
v1::ToAgent GoneOf(const TaskId& id, std::optional<bool> succeeded, bool stays) {
  v1::ToAgent command = OrderTo(id);
  v1::PodGone& gone = *command.mutable_pod_gone();
  if (succeeded) gone.set_exit_code(*succeeded ? 0 : 1);
  gone.set_stays(stays);
  return command;
}

}  // namespace

void PodNodes::SetBell(const std::function<void()>& bell) {
  MutexLock lock(mutex_);
  bell_ = bell;
}

void PodNodes::Ring() {
  if (bell_) bell_();
}

// ---- From the engine. ----

void PodNodes::Send(const NodeId& node, v1::ToAgent command) {
  if (command.has_task()) {
    const TaskId id = IdOf(command.task());
    MutexLock lock(mutex_);
    const bool is_other =
        std::any_of(others_.begin(), others_.end(), [&](const PodTask& pod) { return pod.id == id; });
    const auto task = hosted_.find(id);
    const bool leaves = command.has_dump() && !command.dump().keep_running();
    const bool held = task != hosted_.end() && task->second.node == node && Hold(task->second, command);
    if (is_other) orders_.emplace_back(node, command);
    if (is_other || held || leaves || command.has_kill()) Ring();
    if (is_other || held) return;
  }
  agents_.Send(node, std::move(command));
}

bool PodNodes::Hold(Hosted& task, const v1::ToAgent& command) {
  const bool leaves = command.has_dump() && !command.dump().keep_running();
  task.leaving.reset();
  if (leaves) task.leaving = command;
  if (command.has_kill()) {
    task.unwanted = true;
    // Nothing of it has to be undone by its agent first.
    const bool can_wait = Begins(task.phase) || (task.phase == v1::RUNNING && task.last.op() == 0);
    const bool waits = task.pod && !task.pod->leaves && can_wait;
    if (!waits) return false;
    task.news |= !task.ending;
    task.ending = command;
    return true;
  }
  if (!task.ending) return leaves;
  // It is not to be ended any more.
  task.ending.reset();
  task.unwanted = false;
  task.news = true;
  return leaves || command.has_abort();
}

v1::FromAgent PodNodes::WordOf(const Hosted& task) const {
  v1::FromAgent message;
  *message.mutable_report() = task.last;
  Complete(*message.mutable_report());
  return message;
}

// A pod that a disruption budget keeps would stand frozen with its image for as long as it does.
void PodNodes::OnAnswer(const Eviction& asked, const absl::Status& answer) {
  MutexLock telling(telling_);
  const bool may_not = absl::IsFailedPrecondition(answer);
  // Those that agents know nothing of; of others nothing is known there.
  if (may_not && !asked.only_ask) spoken_.Refuse(asked.uid, std::string(answer.message()), *engine_);
  v1::FromAgent refused;
  NodeId node;
  std::optional<v1::ToAgent> dump;
  {
    MutexLock lock(mutex_);
    const auto task = std::find_if(hosted_.begin(), hosted_.end(),
                                   [&](const auto& one) { return one.second.uid == asked.uid; });
    if (task == hosted_.end()) return;
    Hosted& hosted = task->second;
    const bool ends = !asked.only_ask && hosted.ending;
    if (ends ? !may_not : !hosted.leaving) return;
    if (!answer.ok() && !may_not) return;  // it is asked again
    node = hosted.node;
    if (!ends) dump.swap(hosted.leaving);
    if (may_not) {
      hosted.refused = ends ? hosted.ending->op() : dump->op();
      hosted.why_refused = absl::StrCat("it may not leave: ", std::string(answer.message()));
      refused = WordOf(hosted);
    }
  }
  if (refused.has_report()) return engine_->OnMessage(node, refused);
  agents_.Send(node, *std::move(dump));
}

// ---- From the agents. ----

absl::Status PodNodes::OnConnected(const NodeId& node, const v1::Hello& hello) {
  MutexLock telling(telling_);
  v1::Hello told = hello;
  {
    MutexLock lock(mutex_);
    if (!known_) return absl::UnavailableError("the pods of the cluster are not known yet");
    const auto there = nodes_.find(node);
    if (there == nodes_.end())
      return absl::FailedPreconditionError(
          absl::StrCat("the cluster has no node ", node.value(), " that is ready"));
    // The kubelet gives its pods this much, and no more.
    *told.mutable_capacity() = ToProto(there->second);
    std::erase_if(let_start_, [&](const auto& pod) { return pod.second == node; });
    std::erase_if(replaced_, [&](const auto& task) { return task.first.first == node; });
    for (auto& [id, task] : hosted_) {
      if (task.node != node) continue;
      task.phase = v1::TASK_PHASE_UNSPECIFIED;
      task.leaving.reset();  // the engine orders anew what it wants
      if (std::exchange(task.ending, std::nullopt)) task.unwanted = false;
      task.told.reset();
      task.told_in_vain.reset();
    }
    TakeAll(node, *told.mutable_tasks());
    TakeHosted();
    for (v1::TaskReport& report : *told.mutable_tasks()) Complete(report);
    spoken_.Introduce(node, others_, told);
  }
  if (const absl::Status met = engine_->OnConnected(node, told); !met.ok()) return met;
  MutexLock lock(mutex_);
  connected_.insert(node);
  Ring();
  return absl::OkStatus();
}

void PodNodes::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  MutexLock telling(telling_);
  v1::FromAgent told = message;
  {
    MutexLock lock(mutex_);
    if (told.has_report()) {
      if (!Take(node, told.report())) return;
      Complete(*told.mutable_report());
    }
    if (told.has_heartbeat()) {
      Tasks& tasks = *told.mutable_heartbeat()->mutable_tasks();
      TakeAll(node, tasks);
      for (v1::TaskReport& report : tasks) Complete(report);
    }
  }
  engine_->OnMessage(node, told);
}

void PodNodes::OnDisconnected(const NodeId& node) {
  MutexLock telling(telling_);
  {
    MutexLock lock(mutex_);
    connected_.erase(node);
  }
  engine_->OnDisconnected(node);
}

bool PodNodes::Take(const NodeId& node, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  if (!IsLive(report.phase()) && replaced_.erase({node, id}) > 0) Ring();
  auto found = hosted_.find(id);
  // Its pod went while nobody could tell its agent.
  if (found == hosted_.end() && IsLive(report.phase()))
    found = hosted_.emplace(id, Hosted{node, report.pod_uid()}).first;
  if (found == hosted_.end()) return true;
  Hosted& task = found->second;
  const bool is_another = task.node != node || (!report.pod_uid().empty() && task.uid != report.pod_uid());
  // One without it is of no task: there is none of this name.
  if (is_another && IsLive(report.phase()) && !report.pod_uid().empty()) {
    if (replaced_.try_emplace({node, id}, Replaced{report.pod_uid()}).second) Ring();
    return false;
  }
  if (is_another) return true;
  replaced_.erase({node, id});  // another order had been there first
  const bool news = task.phase != report.phase() || task.leaves != report.leaves();
  task.phase = report.phase();
  task.leaves = report.leaves();
  task.last = report;
  if (news) task.told.reset();
  if (report.phase() == v1::RUNNING) failures_.erase(id.job);
  if (news) Ring();
  return true;
}

void PodNodes::TakeAll(const NodeId& node, Tasks& tasks) {
  const auto is_left_out = [&](const v1::TaskReport& report)
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !Take(node, report); };
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(), is_left_out), tasks.end());
}

void PodNodes::Complete(v1::TaskReport& report) const {
  const auto found = hosted_.find(IdOf(report));
  if (found == hosted_.end() || !found->second.pod) return;
  const PodTask& pod = *found->second.pod;
  if (!report.pod_uid().empty() && report.pod_uid() != pod.uid) return;
  *report.mutable_spec() = ToProto(pod.spec);
  if (found->second.refused > report.failed_op()) {
    report.set_failed_op(found->second.refused);
    report.set_error(found->second.why_refused);
  }
  // Until its agent is told, the order can be taken back (Abort).
  if (found->second.ending && (report.op() == 0 || Begins(report.phase())))
    report.set_op(found->second.ending->op());
  if (!pod.not_saved.empty()) report.set_cannot_checkpoint(pod.not_saved);
}

// ---- At every change in the cluster. ----

void PodNodes::Round(const ClusterNow& cluster, Time now) {
  MutexLock telling(telling_);
  std::vector<PodTask> others;
  std::set<NodeId> connected;
  Orders to_agents;
  Reports to_engine;
  {
    MutexLock lock(mutex_);
    Observe(cluster);
    OrderHeldEnds(to_agents, to_engine);
    OrderStarts(now, to_agents);
    RefuseStarts(now, to_agents);
    OrderEnds(now, to_agents);
    LetStart(cluster.plain, to_agents);
    others = others_;
    connected = connected_;
  }
  for (auto& [node, command] : to_agents) agents_.Send(node, std::move(command));
  for (const auto& [node, report] : to_engine) engine_->OnMessage(node, report);
  spoken_.Observe(
      others, [&](const NodeId& node) { return connected.contains(node); }, *engine_);
  ObeySpoken();
}

std::vector<Eviction> PodNodes::Unwanted(const ClusterNow&, Time now) {
  MutexLock telling(telling_);
  ObeySpoken();
  std::vector<Eviction> evictions;
  MutexLock lock(mutex_);
  AddEvictions(now, evictions);
  spoken_.AddEvictions(
      others_,
      [&](const NodeId& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return connected_.contains(node); },
      evictions);
  return evictions;
}

bool PodNodes::IsUnwanted(const Eviction& eviction) {
  // Nothing of it runs any more, so nobody takes that back.
  if (eviction.at_once) return true;
  MutexLock telling(telling_);
  ObeySpoken();
  MutexLock lock(mutex_);
  if (spoken_.IsUnwanted(eviction.uid, [&](const NodeId& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return connected_.contains(node);
      }))
    return true;
  return std::any_of(hosted_.begin(), hosted_.end(),
                     [&](const auto& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                       return one.second.uid == eviction.uid && IsUnwanted(one.second);
                     });
}

void PodNodes::ObeySpoken() {
  Orders orders;
  std::set<NodeId> connected;
  {
    MutexLock lock(mutex_);
    orders.swap(orders_);
    connected = connected_;
  }
  for (const NodeOrder& order : orders) {
    if (connected.contains(order.first)) spoken_.Obey(order, *engine_);
  }
}

void PodNodes::Leave() {
  MutexLock lock(mutex_);
  known_ = false;
}

void PodNodes::Observe(const ClusterNow& cluster) {
  known_ = true;
  nodes_.clear();
  for (const auto& machine : cluster.machines) nodes_[machine.id] = machine.allocatable;
  std::map<std::string, ObjectName> plain;  // by uid
  for (const PlainPod& pod : cluster.plain) plain[pod.uid] = pod.pod;
  others_ = cluster.tasks;
  for (auto& [id, task] : hosted_) {
    task.seen = false;
    task.stays.reset();
    if (const auto pod = plain.find(task.uid); pod != plain.end()) task.stays = pod->second;
  }
  TakeHosted();
  for (auto& [id, task] : hosted_) {
    if (task.seen || !task.pod) continue;
    task.pod.reset();
    task.told.reset();
  }
  std::erase_if(hosted_, [](const auto& task) { return !task.second.pod && !IsLive(task.second.phase); });
  for (auto& [name, task] : replaced_) {
    task.stays = plain.contains(task.uid);
    task.is_gone = std::none_of(cluster.tasks.begin(), cluster.tasks.end(),
                                [&, &uid = task.uid](const PodTask& pod) { return pod.uid == uid; });
  }
}

// Of the pods that nobody is told of those that agents can save, can restore, or know already.
void PodNodes::TakeHosted() {
  std::vector<PodTask> others;
  for (PodTask& pod : others_) {
    const auto known = hosted_.find(pod.id);
    const bool is_known = known != hosted_.end() && IsKnown(known->second.phase);
    // As one that was saved did, which what may be in a pod now does not change.
    const bool goes_on = pod.next.how != How::kBeginning;
    if (!pod.not_saved.empty() && !is_known && !goes_on) {
      others.push_back(std::move(pod));
      continue;
    }
    Hosted& task = hosted_[pod.id];
    // Another pod with the same number: one that went before its start was recorded.
    if (task.node != pod.node || task.uid != pod.uid) {
      if (IsLive(task.phase)) replaced_[{task.node, pod.id}] = Replaced{task.uid};
      task = Hosted{pod.node, pod.uid};
    }
    if (!task.pod || task.pod->succeeded != pod.succeeded || task.pod->was_ended() != pod.was_ended())
      task.told.reset();
    task.pod = std::move(pod);
    task.seen = true;
  }
  others_ = std::move(others);
}

// Where it leaves, this is the end of a frozen rest, and its work is in its image. A pod that has failed
// would be the end of its job, so it is removed first, as any that leaves.
bool PodNodes::HasFailed(const Hosted& task) {
  return task.pod && (task.pod->failed_deleted || (task.pod->succeeded && !*task.pod->succeeded));
}

bool PodNodes::IsDue(std::optional<Time>& told, Time now) {
  if (told && now < *told + kSayAgain && now >= *told) return false;
  told = now;
  return true;
}

// Of which their agents do not know yet. One that is being deleted would only keep the next one waiting.
void PodNodes::OrderStarts(Time now, Orders& orders) {
  for (auto& [id, task] : hosted_) {
    const bool waits = task.pod && !task.pod->is_over() && !task.pod->leaves && !IsKnown(task.phase) &&
                       task.pod->next.how != How::kNotYet && connected_.contains(task.node) &&
                       !replaced_.contains({task.node, id}) && !AnEarlierOneMayLive(id, task);
    if (waits && IsDue(task.told, now)) orders.emplace_back(task.node, StartOf(*task.pod));
  }
}

// That are no tasks to their agents, and will not be. Their containers may wait for that.
void PodNodes::RefuseStarts(Time now, Orders& orders) {
  for (auto& [id, task] : hosted_) {
    const bool in_vain = task.pod && task.pod->leaves && !task.pod->is_over() && !IsKnown(task.phase) &&
                         !task.told && connected_.contains(task.node);
    if (!in_vain || !IsDue(task.told_in_vain, now)) continue;
    v1::ToAgent command;
    command.mutable_refuse_start();
    SetPod(task.pod->pod, task.uid, command);
    orders.emplace_back(task.node, std::move(command));
  }
}

bool PodNodes::AnEarlierOneMayLive(const TaskId& id, const Hosted& task) const {
  auto other = hosted_.lower_bound({id.job, task.pod->next.starts + 1, 0});
  for (; other != hosted_.end() && other->first < TaskId{id.job, id.incarnation, 0}; ++other) {
    if (MayLive(other->second)) return true;
  }
  return false;
}

// Nobody knows what an agent that is away has been told, perhaps by an earlier controller.
bool PodNodes::MayLive(const Hosted& task) const {
  const bool is_there = task.pod && !task.pod->is_over();
  if (IsKnown(task.phase) && !IsLive(task.phase)) return false;
  if (!connected_.contains(task.node)) return is_there;
  return IsLive(task.phase) || (is_there && task.told);
}

// Whose pods are over, or gone.
void PodNodes::OrderEnds(Time now, Orders& orders) {
  for (auto& [id, task] : hosted_) {
    const bool can_only_be_removed = task.leaves && (task.stays || HasFailed(task));
    const bool ended = (!task.pod || task.pod->is_over()) && !can_only_be_removed;
    if (ended && IsLive(task.phase) && connected_.contains(task.node) && IsDue(task.told, now))
      orders.emplace_back(task.node,
                          GoneOf(id, task.pod ? task.pod->succeeded : std::nullopt, task.stays.has_value()));
  }
  for (auto& [name, task] : replaced_) {
    const auto& [node, id] = name;
    if (task.is_gone && connected_.contains(node) && IsDue(task.told, now))
      orders.emplace_back(node, GoneOf(id, std::nullopt, task.stays));
  }
}

void PodNodes::OrderHeldEnds(Orders& orders, Reports& reports) {
  for (auto& [id, task] : hosted_) {
    const bool goes = task.ending && (!task.pod || task.pod->leaves || task.pod->is_over());
    if (goes) {
      orders.emplace_back(task.node, *std::exchange(task.ending, std::nullopt));
      task.news = true;
    }
    if (std::exchange(task.news, false) && task.pod && connected_.contains(task.node))
      reports.emplace_back(task.node, WordOf(task));
  }
}

// Pods that are made by siding-runc and are none of siding's business.
void PodNodes::LetStart(const std::vector<PlainPod>& pods, Orders& orders) {
  std::map<std::string, NodeId> told;
  for (const PlainPod& pod : pods) {
    if (!pod.for_good || !connected_.contains(pod.node)) continue;
    told[pod.uid] = pod.node;
    if (let_start_.contains(pod.uid)) continue;
    v1::ToAgent command;
    command.mutable_let_start();
    SetPod(pod.pod, pod.uid, command);
    orders.emplace_back(pod.node, std::move(command));
  }
  let_start_ = std::move(told);
}

// Without a connection the engine cannot take back what it has ordered.
bool PodNodes::IsUnwanted(const Hosted& task) const {
  return task.unwanted && connected_.contains(task.node);
}

void PodNodes::AddEvictions(Time now, std::vector<Eviction>& evictions) {
  std::erase_if(failures_, [&](const auto& job) { return now > job.second.last + kRemembered; });
  for (auto& [id, task] : hosted_) {
    // As its agent says now: what another one has said may not be so any more.
    const bool saved = task.leaves && IsKnown(task.phase);
    if (task.stays && task.leaves) evictions.push_back({id.job, *task.stays, task.uid, true, saved});
    if (task.pod && task.leaves && HasFailed(task))
      evictions.push_back({id.job, task.pod->pod, task.pod->uid, true, saved});
    if (!task.pod || task.pod->is_over()) continue;
    // Its agent may have forgotten it, while the controller before this one was to evict it.
    const bool forgotten = task.pod->start_is_over && !IsKnown(task.phase) && connected_.contains(task.node);
    if ((CouldNotStart(task.phase) || forgotten) && !task.failed) {
      task.failed = now;
      Failures& failures = failures_[id.job];
      failures = {failures.count + 1, now};
    }
    const bool paused = !task.failed || now < *task.failed + PauseBefore(failures_[id.job].count);
    if (task.leaving)
      evictions.push_back({.job = id.job, .pod = task.pod->pod, .uid = task.pod->uid, .only_ask = true});
    if (IsUnwanted(task) || task.leaves || !paused)
      evictions.push_back({id.job, task.pod->pod, task.pod->uid, task.leaves || !paused, saved});
  }
}

}  // namespace siding::kubernetes
