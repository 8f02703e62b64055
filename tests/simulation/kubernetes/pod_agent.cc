#include "tests/simulation/kubernetes/pod_agent.h"

#include <utility>

#include "agent/task/orders.h"
#include "controller/wire/wire.h"
#include "tests/simulation/kubernetes/kubelets.h"

namespace siding::simulation::pods {

using namespace std::chrono_literals;

PodAgent::PodAgent(Lab& lab, Containers& containers, simulation::Network& network,
                   std::map<TaskId, agent::TaskRecord>& records, PodAgentOptions options)
    : lab_(lab),
      containers_(containers),
      options_(std::move(options)),
      host_{lab,
            containers,
            options_.node,
            records,
            [this](v1::FromAgent message) { stream_.Send(std::move(message)); },
            options_.dump},
      stream_(lab, network,
              {NodeId(options_.node), options_.name, options_.heartbeat, [this] { return Hello(); },
               [this] { return Heartbeat(); }, [this](const v1::ToAgent& command) { Execute(command); }}) {
  std::erase_if(lab_.store.drafts, [&](const auto& draft) { return draft.second.value() == options_.node; });
  for (const auto& [id, record] : std::map<TaskId, agent::TaskRecord>(records)) {
    pods_[id] = std::make_unique<HostedPod>(host_, id, record);
    owners_[pods_[id]->uid()] = id;
  }
  for (const auto& [id, pod] : pods_) pod->Adopt();
  lab_.trace(options_.node, "agent ", options_.name, " starts with ", pods_.size(), " pods");
  containers_.Attach(options_.node, this);
  stream_.Dial();
}

PodAgent::~PodAgent() { containers_.Attach(options_.node, nullptr); }

HostedPod* PodAgent::OwnerOf(const std::string& uid) {
  const auto owner = owners_.find(uid);
  return owner == owners_.end() ? nullptr : pods_.at(owner->second).get();
}

absl::StatusOr<std::optional<ImageName>> PodAgent::OnStarting(const std::string& uid, const std::string& id) {
  if (HostedPod* const pod = OwnerOf(uid)) return pod->OnStarting(id);
  if (let_.contains(uid)) return std::optional<ImageName>();
  return absl::UnavailableError("siding's controller has not said what this pod is to it");
}

void PodAgent::OnMade(const std::string& uid, const std::string& id, const absl::StatusOr<int>& made) {
  if (HostedPod* const pod = OwnerOf(uid)) pod->OnMade(id, made);
}

void PodAgent::Execute(const v1::ToAgent& command) {
  if (command.has_verify() || command.has_delete_())
    return stream_.After(lab_.random.Between(1ms, 100ms), [this, command] { Answer(command); });
  if (command.has_let_start()) {
    let_.insert(command.pod().uid());
    return containers_.Ring(options_.node);
  }
  if (command.has_refuse_start()) return;  // in this world who waits for a pod goes with it
  const TaskId id = TaskIdOf(command.task());
  if (command.has_forget()) return Forget(id);
  const bool makes = command.has_launch() || command.has_restore();
  // The start of a pod that went before it was recorded has the number of the next pod's, too.
  if (const auto earlier = pods_.find(id);
      makes && earlier != pods_.end() && earlier->second->uid() != command.pod().uid())
    Forget(id);
  auto pod = pods_.find(id);
  if (pod == pods_.end()) {
    if (!makes) return stream_.SendUnknown(command);
    pod = pods_.emplace(id, std::make_unique<HostedPod>(host_, id, command.pod())).first;
    owners_[command.pod().uid()] = id;
  }
  pod->second->Execute(command);
}

void PodAgent::Forget(const TaskId& id) {
  const auto pod = pods_.find(id);
  if (pod == pods_.end() || !pod->second->CanForget()) return;
  const auto owner = owners_.find(pod->second->uid());
  if (owner != owners_.end() && owner->second == id) owners_.erase(owner);
  pods_.erase(pod);
  host_.records.erase(id);
}

void PodAgent::Answer(const v1::ToAgent& command) {
  v1::FromAgent message;
  v1::OpResult& result = *message.mutable_result();
  result.set_op(command.op());
  if (command.has_delete_()) {
    const ImageName name{"", command.delete_().checkpoint(), command.delete_().rank()};
    lab_.trace(options_.node, "image ", ToString(name), " is deleted");
    if (lab_.store.images.erase(name) > 0) lab_.on_delete(name);
  } else {
    const auto image = lab_.store.images.find({"", command.verify().checkpoint(), command.verify().rank()});
    const bool good = image != lab_.store.images.end() && !image->second.damaged;
    if (!good) result.set_code(static_cast<int>(absl::StatusCode::kDataLoss));
  }
  stream_.Send(std::move(message));
}

v1::Hello PodAgent::Hello() {
  v1::Hello hello;
  hello.set_boot_id(options_.boot);
  hello.set_criu("4.2.1, as root");
  hello.mutable_capacity()->set_slots(kCpuOfNode);
  hello.mutable_capacity()->set_memory(8LL << 30);
  for (const auto& [id, pod] : pods_) *hello.add_tasks() = pod->Report();
  return hello;
}

v1::Heartbeat PodAgent::Heartbeat() {
  v1::Heartbeat heartbeat;
  heartbeat.set_ram_available(4LL << 30);
  heartbeat.set_local_disk_free(1LL << 40);
  heartbeat.set_shared_disk_free(1LL << 40);
  const auto say = [](v1::Rate& said, const Rate& rate) {
    said.set_bytes_per_second(rate.bytes_per_second);
    said.set_overhead_us(rate.overhead.count());
    said.set_spread(rate.spread);
  };
  for (v1::TierRates* rates : {heartbeat.mutable_local(), heartbeat.mutable_shared()}) {
    say(*rates->mutable_dump(), options_.dump);
    say(*rates->mutable_restore(), options_.restore);
  }
  for (const auto& [id, pod] : pods_) *heartbeat.add_tasks() = pod->Report();
  return heartbeat;
}

}  // namespace siding::simulation::pods
