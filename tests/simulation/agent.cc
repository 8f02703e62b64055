#include "tests/simulation/agent.h"

#include "agent/task/orders.h"
#include "controller/wire/wire.h"

namespace siding::simulation {

using namespace std::chrono_literals;

Agent::Agent(Lab& lab, Machine& machine, Network& network, AgentOptions options)
    : lab_(lab),
      machine_(machine),
      options_(std::move(options)),
      host_{lab, machine, [this](v1::FromAgent message) { stream_.Send(std::move(message)); }, options_.dump,
            options_.restore},
      stream_(lab, network,
              {machine.node(), options_.name, options_.heartbeat, [this] { return Hello(); },
               [this] { return Heartbeat(); }, [this](const v1::ToAgent& command) { Execute(command); }}) {
  std::erase_if(lab_.store.drafts, [&](const auto& draft) { return draft.second == machine_.node(); });
  machine_.watcher = [this](const TaskId& id) {
    if (const auto task = tasks_.find(id); task != tasks_.end()) task->second->OnShim();
  };
  for (const auto& [id, folder] : machine_.folders)
    tasks_[id] = std::make_unique<Task>(host_, id, folder.record);
  for (const auto& [id, task] : tasks_) task->Adopt();
  lab_.trace(machine_.node().value(), "agent ", options_.name, " starts with ", tasks_.size(), " tasks");
  stream_.Dial();
}

Agent::~Agent() { machine_.OnAgentDeath(); }

void Agent::Execute(const v1::ToAgent& command) {
  if (command.has_verify() || command.has_delete_()) {
    return stream_.After(lab_.random.Between(1ms, 100ms), [this, command] { Answer(command); });
  }
  if (command.has_copy()) return Copy(command);
  if (command.has_forget()) return Forget(command);
  const TaskId id = TaskIdOf(command.task());
  auto task = tasks_.find(id);
  if (task == tasks_.end()) {
    if (!command.has_launch() && !command.has_restore()) return stream_.SendUnknown(command);
    task = tasks_.emplace(id, std::make_unique<Task>(host_, id)).first;
  }
  task->second->Execute(command);
}

void Agent::Forget(const v1::ToAgent& command) {
  const auto task = tasks_.find(TaskIdOf(command.task()));
  if (task == tasks_.end() || !task->second->CanForget()) return;
  machine_.folders.erase(task->first);
  tasks_.erase(task);
}

void Agent::Answer(const v1::ToAgent& command) {
  v1::FromAgent message;
  v1::OpResult& result = *message.mutable_result();
  result.set_op(command.op());
  if (command.has_delete_()) {
    const v1::DeleteCheckpoint& order = command.delete_();
    const ImageName name = NameImage(order.tier(), machine_.node(), order.checkpoint(), order.rank());
    CallOffCopy(NameImage(v1::LOCAL, machine_.node(), order.checkpoint(), order.rank()));
    for (const ImageName& gone : {name, ImageName{"", order.checkpoint(), order.rank()}}) {
      if (gone != name && !order.copy_too()) continue;
      if (lab_.store.images.erase(gone) > 0) lab_.on_delete(gone);
      lab_.trace(machine_.node().value(), "image ", ToString(gone), " is deleted");
    }
  } else {
    const v1::VerifyCheckpoint& order = command.verify();
    const auto image =
        lab_.store.images.find(NameImage(order.tier(), machine_.node(), order.checkpoint(), order.rank()));
    const bool good = image != lab_.store.images.end() && !image->second.damaged;
    if (!good) result.set_code(static_cast<int>(absl::StatusCode::kDataLoss));
  }
  stream_.Send(std::move(message));
}

void Agent::Copy(const v1::ToAgent& command) {
  const v1::CopyCheckpoint& order = command.copy();
  const ImageName local = NameImage(v1::LOCAL, machine_.node(), order.checkpoint(), order.rank());
  const std::string job = local.checkpoint.substr(0, local.checkpoint.find('.') + 1);
  for (Copying& other : copies_) {
    const bool is_earlier = other.local.checkpoint != local.checkpoint && other.local.rank == local.rank;
    other.called_off |= is_earlier && other.local.checkpoint.substr(0, job.size()) == job;
  }
  auto copy = std::find_if(copies_.begin(), copies_.end(),
                           [&](const Copying& other) { return other.local == local; });
  const bool is_new = copy == copies_.end();
  if (is_new) copy = copies_.insert(copies_.end(), Copying{local});
  copy->command = command;
  copy->pauses_until = order.pause() ? lab_.timeline.Now() + 2min : Time{};
  if (is_new && copies_.size() == 1) {
    BeginCopy();
  } else if (copies_.front().is_written) {
    EndCopy();
  }
}

void Agent::CallOffCopy(const ImageName& local) {
  const auto copy = std::find_if(copies_.begin(), copies_.end(),
                                 [&](const Copying& other) { return other.local == local; });
  if (copy == copies_.end()) return;
  copy->called_off = true;
  if (copies_.front().is_written) EndCopy();
}

void Agent::BeginCopy() {
  if (copies_.empty()) return;
  stream_.After(lab_.random.Between(10ms, 20s), [this, local = copies_.front().local] {
    if (copies_.empty() || copies_.front().local != local) return;
    copies_.front().is_written = true;
    EndCopy();
  });
}

void Agent::EndCopy() {
  const Copying& copy = copies_.front();
  if (lab_.timeline.Now() < copy.pauses_until && !copy.called_off) {
    return stream_.After(copy.pauses_until - lab_.timeline.Now(), [this, local = copy.local] {
      if (!copies_.empty() && copies_.front().local == local && copies_.front().is_written) EndCopy();
    });
  }
  const Copying done = copy;
  copies_.pop_front();
  AnswerCopy(done.command, done.called_off ? absl::StatusCode::kCancelled : CopyNow(done.local));
  BeginCopy();
}

absl::StatusCode Agent::CopyNow(const ImageName& local) {
  const ImageName shared{"", local.checkpoint, local.rank};
  const auto there = lab_.store.images.find(shared);
  if (there != lab_.store.images.end() && !there->second.damaged) return absl::StatusCode::kOk;
  if (there != lab_.store.images.end()) lab_.store.images.erase(there);  // it is set aside
  const auto image = lab_.store.images.find(local);
  if (image == lab_.store.images.end()) return absl::StatusCode::kNotFound;
  image->second.damaged |= lab_.random.Chance(lab_.odds.image_rots);
  if (image->second.damaged) return absl::StatusCode::kDataLoss;
  if (lab_.store.IsFull(v1::SHARED, lab_.timeline.Now())) return absl::StatusCode::kResourceExhausted;
  lab_.store.images.emplace(shared, image->second);
  lab_.trace(machine_.node().value(), "image ", ToString(local), " is copied");
  return absl::StatusCode::kOk;
}

void Agent::AnswerCopy(const v1::ToAgent& command, absl::StatusCode code) {
  v1::FromAgent message;
  message.mutable_result()->set_op(command.op());
  message.mutable_result()->set_code(static_cast<int>(code));
  stream_.Send(std::move(message));
}

v1::Hello Agent::Hello() {
  v1::Hello hello;
  hello.set_boot_id(std::to_string(machine_.boot()));
  *hello.mutable_capacity() = ToProto(machine_.capacity());
  hello.set_keeps_connections(true);
  if (machine_.fault_is_seen) hello.set_problem(machine_.fault);
  if (machine_.local_in_memory) *hello.mutable_kept() = Kept();
  hello.set_has_shared(true);
  for (const auto& [id, task] : tasks_) *hello.add_tasks() = task->Report();
  return hello;
}

v1::Heartbeat Agent::Heartbeat() {
  v1::Heartbeat heartbeat;
  Bytes used;
  for (const auto& [id, process] : machine_.processes()) used += process.program.memory;
  heartbeat.set_ram_available((machine_.capacity().memory - used).value);
  if (machine_.fault_is_seen) heartbeat.set_problem(machine_.fault);
  const auto free = [&](v1::Tier tier) {
    return lab_.store.IsFull(tier, lab_.timeline.Now()) ? 0 : int64_t{1} << 40;
  };
  heartbeat.set_local_disk_free(free(v1::LOCAL));
  heartbeat.set_shared_disk_free(free(v1::SHARED));
  const auto say = [](v1::Rate& said, const Rate& rate) {
    said.set_bytes_per_second(rate.bytes_per_second);
    said.set_overhead_us(rate.overhead.count());
    said.set_spread(rate.spread);
  };
  for (v1::TierRates* rates : {heartbeat.mutable_local(), heartbeat.mutable_shared()}) {
    say(*rates->mutable_dump(), options_.dump);
    say(*rates->mutable_restore(), options_.restore);
  }
  for (const Copying& copying : copies_) {
    v1::ImageCopy& copy = *heartbeat.add_copies();
    copy.set_checkpoint(copying.local.checkpoint);
    copy.set_rank(copying.local.rank);
  }
  heartbeat.set_local_in_memory(machine_.local_in_memory);
  if (machine_.local_in_memory && lab_.timeline.Now() >= names_kept_at_) *heartbeat.mutable_kept() = Kept();
  for (const auto& [id, task] : tasks_) *heartbeat.add_tasks() = task->Report();
  return heartbeat;
}

// All images in its memory.
v1::KeptImages Agent::Kept() {
  names_kept_at_ = lab_.timeline.Now() + 1min;
  v1::KeptImages kept;
  for (const auto& [name, image] : lab_.store.images) {
    if (name.disk != machine_.node().value()) continue;
    v1::KeptImage& named = *kept.add_images();
    named.set_checkpoint(name.checkpoint);
    named.set_rank(name.rank);
  }
  return kept;
}

}  // namespace siding::simulation
