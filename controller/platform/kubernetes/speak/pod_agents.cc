#include "controller/platform/kubernetes/speak/pod_agents.h"

#include "absl/strings/str_cat.h"
#include "controller/wire/wire.h"

namespace siding::kubernetes {
namespace {

constexpr char kNoAgents[] = "pods are only evicted in this cluster";

v1::Hello HelloOf(const ClusterNow::Machine& machine) {
  v1::Hello hello;
  hello.set_node(machine.id.value());
  // That a machine restarted shows in its pods.
  hello.set_boot_id(machine.uid);
  *hello.mutable_capacity() = ToProto(machine.allocatable);
  hello.set_criu_problem(kNoAgents);
  hello.set_agent("none: kubernetes");
  return hello;
}

}  // namespace

void PodAgents::SetBell(const std::function<void()>& bell) {
  MutexLock lock(mutex_);
  bell_ = bell;
}

void PodAgents::Send(const NodeId& node, v1::ToAgent command) {
  {
    MutexLock lock(mutex_);
    if (served_.contains(node)) {
      orders_.emplace_back(node, std::move(command));
      if (bell_) bell_();
      return;
    }
  }
  others_.Send(node, std::move(command));
}

absl::Status PodAgents::OnConnected(const NodeId& node, const v1::Hello& hello) {
  {
    MutexLock lock(mutex_);
    if (!known_) return absl::UnavailableError("the nodes of the cluster are not known yet");
    if (nodes_.contains(node))
      return absl::FailedPreconditionError(
          absl::StrCat("node ", node.value(),
                       " is Kubernetes': expected kubernetes.mode: checkpointing for agents there"));
  }
  return engine_->OnConnected(node, hello);
}

void PodAgents::Round(const ClusterNow& cluster, Time now) {
  {
    MutexLock lock(mutex_);
    known_ = true;
    nodes_.insert(cluster.nodes.begin(), cluster.nodes.end());
  }
  Meet(cluster);
  pods_.Observe(cluster.tasks, WhomItHasMet(), *engine_);
  ObeyAll();
  Beat(cluster, now);
}

std::vector<Eviction> PodAgents::Unwanted(const ClusterNow& cluster, Time) {
  ObeyAll();
  std::vector<Eviction> evictions;
  pods_.AddEvictions(cluster.tasks, WhomItHasMet(), evictions);
  return evictions;
}

bool PodAgents::IsUnwanted(const Eviction& eviction) {
  ObeyAll();
  return pods_.IsUnwanted(eviction.uid, WhomItHasMet());
}

SpokenPods::SpeaksFor PodAgents::WhomItHasMet() const {
  return [this](const NodeId& node) { return machines_.contains(node); };
}

void PodAgents::ObeyAll() {
  std::vector<NodeOrder> orders;
  {
    MutexLock lock(mutex_);
    orders.swap(orders_);
  }
  for (const NodeOrder& order : orders) Obey(order);
}

void PodAgents::OnAnswer(const Eviction& asked, const absl::Status& answer) {
  if (absl::IsFailedPrecondition(answer)) pods_.Refuse(asked.uid, std::string(answer.message()), *engine_);
}

void PodAgents::Leave() { Meet({}); }

void PodAgents::Meet(const ClusterNow& cluster) {
  std::map<NodeId, const ClusterNow::Machine*> there;
  for (const auto& machine : cluster.machines) there[machine.id] = &machine;
  for (auto it = machines_.begin(); it != machines_.end();) {
    const auto found = there.find(it->first);
    if (found != there.end() && found->second->uid == it->second.uid) {
      ++it;
      continue;
    }
    {
      MutexLock lock(mutex_);
      served_.erase(it->first);
    }
    engine_->OnDisconnected(it->first);
    it = machines_.erase(it);
  }
  for (const auto& [id, machine] : there) {
    if (machines_.contains(id)) continue;
    v1::Hello hello = HelloOf(*machine);
    pods_.Introduce(id, cluster.tasks, hello);
    {
      MutexLock lock(mutex_);
      served_.insert(id);
    }
    if (const absl::Status met = engine_->OnConnected(id, hello); !met.ok()) {
      MutexLock lock(mutex_);
      served_.erase(id);
      log_.Warn(id.value(),
                absl::StrCat("kubernetes: node ", id.value(), " is not spoken for: ", met.message()));
      continue;
    }
    machines_[id] = {machine->uid, {}};
  }
}

void PodAgents::Obey(const NodeOrder& order) {
  const auto& [node, command] = order;
  if (!command.has_verify() && !command.has_delete_()) return pods_.Obey(order, *engine_);
  v1::FromAgent message;
  message.mutable_result()->set_op(command.op());
  // There is no image on any node.
  message.mutable_result()->set_code(command.has_delete_() ? 0
                                                           : static_cast<int>(absl::StatusCode::kNotFound));
  engine_->OnMessage(node, message);
}

void PodAgents::Beat(const ClusterNow& cluster, Time now) {
  std::map<NodeId, v1::FromAgent> due;
  for (const auto& there : cluster.machines) {
    const auto machine = machines_.find(there.id);
    if (machine == machines_.end() || now < machine->second.last_heartbeat + heartbeat_) continue;
    machine->second.last_heartbeat = now;
    due[there.id].mutable_heartbeat()->set_ram_available(there.allocatable.memory.value);
  }
  pods_.AddTo(due);
  for (const auto& [node, beat] : due) engine_->OnMessage(node, beat);
}

}  // namespace siding::kubernetes
