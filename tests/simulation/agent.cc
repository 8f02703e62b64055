#include "tests/simulation/agent.h"

#include "agent/task/orders.h"
#include "controller/wire/wire.h"

namespace siding::simulation {

using namespace std::chrono_literals;

Agent::Agent(Lab& lab, Machine& machine, Network& network, AgentOptions options)
    : lab_(lab),
      machine_(machine),
      network_(network),
      options_(std::move(options)),
      host_{lab, machine, [this](v1::FromAgent message) { Send(std::move(message)); }, options_.dump,
            options_.restore} {
  std::erase_if(lab_.store.drafts, [&](const auto& draft) { return draft.second == machine_.node(); });
  machine_.watcher = [this](const TaskId& id) {
    if (const auto task = tasks_.find(id); task != tasks_.end()) task->second->OnShim();
  };
  for (const auto& [id, folder] : machine_.folders)
    tasks_[id] = std::make_unique<Task>(host_, id, folder.record);
  for (const auto& [id, task] : tasks_) task->Adopt();
  lab_.trace(machine_.node().value(), "agent ", options_.name, " starts with ", tasks_.size(), " tasks");
  Dial();
}

Agent::~Agent() {
  machine_.OnAgentDeath();
  if (stream_) network_.CloseByAgent(stream_);
}

void Agent::After(Duration delay, std::function<void()> what) {
  lab_.timeline.After(delay, [life = std::weak_ptr<int>(life_), what = std::move(what)] {
    if (!life.expired()) what();
  });
}

// ---- Tasks. ----

void Agent::Execute(const v1::ToAgent& command) {
  if (command.has_verify() || command.has_delete_()) {
    return After(lab_.random.Between(1ms, 100ms), [this, command] { Answer(command); });
  }
  if (command.has_forget()) return Forget(command);
  const TaskId id = TaskIdOf(command.task());
  auto task = tasks_.find(id);
  if (task == tasks_.end()) {
    if (!command.has_launch() && !command.has_restore()) return SendUnknown(command);
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

void Agent::SendUnknown(const v1::ToAgent& command) {
  v1::FromAgent message;
  v1::TaskReport& report = *message.mutable_report();
  *report.mutable_task() = command.task();
  report.set_phase(v1::LOST);
  report.set_error("there is no such task on this node");
  Send(std::move(message));
}

void Agent::Answer(const v1::ToAgent& command) {
  v1::FromAgent message;
  v1::OpResult& result = *message.mutable_result();
  result.set_op(command.op());
  if (command.has_delete_()) {
    const v1::DeleteCheckpoint& order = command.delete_();
    const ImageName name = NameImage(order.tier(), machine_.node(), order.checkpoint(), order.rank());
    if (lab_.store.images.erase(name) > 0) lab_.on_delete(name);
    lab_.trace(machine_.node().value(), "image ", ToString(name), " is deleted");
  } else {
    const v1::VerifyCheckpoint& order = command.verify();
    const auto image =
        lab_.store.images.find(NameImage(order.tier(), machine_.node(), order.checkpoint(), order.rank()));
    const bool good = image != lab_.store.images.end() && !image->second.damaged;
    if (!good) result.set_code(static_cast<int>(absl::StatusCode::kDataLoss));
  }
  Send(std::move(message));
}

v1::FromAgent Agent::Hello() {
  v1::FromAgent message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_node(machine_.node().value());
  hello.set_boot_id(std::to_string(machine_.boot()));
  *hello.mutable_capacity() = ToProto(machine_.capacity());
  hello.set_agent(options_.name);
  hello.set_connection(++connections_);
  for (const auto& [id, task] : tasks_) *hello.add_tasks() = task->Report();
  return message;
}

v1::FromAgent Agent::Heartbeat() {
  v1::FromAgent message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  Bytes used;
  for (const auto& [id, process] : machine_.processes()) used += process.program.memory;
  heartbeat.set_ram_available((machine_.capacity().memory - used).value);
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
  for (const auto& [id, task] : tasks_) *heartbeat.add_tasks() = task->Report();
  return message;
}

// ---- The stream. ----

void Agent::Hang(bool deaf) {
  lab_.trace(machine_.node().value(), "agent ", options_.name, deaf ? " hangs" : " says nothing any more");
  hangs_ = true;
  deaf_ = deaf;
}

void Agent::GoOn() {
  if (!std::exchange(hangs_, false)) return;
  lab_.trace(machine_.node().value(), "agent ", options_.name, " goes on");
  deaf_ = false;
  if (std::exchange(dials_later_, false)) return Dial();
  for (const v1::ToAgent& command : std::exchange(unheard_, {})) OnCommand(command);
  Write();
}

void Agent::DialAgain() {
  failures_ = welcomed_ ? 0 : failures_ + 1;
  welcomed_ = false;
  stream_ = nullptr;
  outgoing_.clear();
  unheard_.clear();
  After(lab_.random.Between(100ms, 1s) * (1 << std::min(failures_, 3)), [this] { Dial(); });
}

void Agent::Dial() {
  if (hangs_) {
    dials_later_ = true;
    return;
  }
  stream_ = network_.Dial(machine_.node(), options_.name, connections_ + 1);
  if (!stream_) return DialAgain();
  stream_->on_command = [this](const v1::ToAgent& command) { OnCommand(command); };
  stream_->on_closed = [this] { DialAgain(); };
  // What is reported from here on waits behind the Hello, which takes a while to be put together.
  v1::FromAgent hello = Hello();
  After(lab_.random.Between(0ms, 20ms), [this, stream = stream_, hello = std::move(hello)] {
    if (stream == stream_) network_.SendUp(stream, hello, true);
  });
}

void Agent::OnCommand(const v1::ToAgent& command) {
  if (deaf_) return unheard_.push_back(command);
  if (!command.has_welcome()) return Execute(command);
  welcomed_ = true;
  failures_ = 0;
  next_heartbeat_ = lab_.timeline.Now();
  writing_ = false;
  Write();
}

void Agent::Send(v1::FromAgent message) {
  if (!stream_) return;
  outgoing_.push_back(std::move(message));
  Write();
}

// As the link's thread does it: what waits is taken, written, and then, if it is time, a heartbeat is put
// together and written. What is reported meanwhile waits for the next round, so it may be older than what
// the heartbeat said.
void Agent::Write() {
  if (!stream_ || !welcomed_ || writing_ || hangs_) return;
  for (v1::FromAgent& message : std::exchange(outgoing_, {})) network_.SendUp(stream_, std::move(message));
  if (!stream_ || lab_.timeline.Now() < next_heartbeat_) return;
  writing_ = true;
  After(lab_.random.Between(0ms, 10ms), [this, stream = stream_] {
    v1::FromAgent heartbeat = Heartbeat();
    After(lab_.random.Between(0ms, 10ms), [this, stream, heartbeat = std::move(heartbeat)] {
      if (stream != stream_) return;
      network_.SendUp(stream, heartbeat);
      writing_ = false;
      next_heartbeat_ = lab_.timeline.Now() + options_.heartbeat;
      After(options_.heartbeat, [this, stream] {
        if (stream == stream_) Write();
      });
      Write();
    });
  });
}

}  // namespace siding::simulation
