#include "bench/simulated/node.h"

#include <algorithm>
#include <random>

namespace siding {
namespace {

constexpr Duration kProgressEvery = std::chrono::seconds(1);

// The ranks of a gang end together, and each draws for itself: so it is drawn from the job's number. What is
// left of an exponential time is distributed as the whole is, so a restored task may draw again.
Duration DrawRun(const v1::TaskRef& task, Duration mean) {
  std::seed_seq seed{static_cast<uint32_t>(task.job()), static_cast<uint32_t>(task.incarnation())};
  std::mt19937 random(seed);
  return FromSeconds(std::exponential_distribution<>(1 / ToSeconds(mean))(random));
}

TaskId IdOf(const v1::TaskRef& task) { return {JobId(task.job()), task.incarnation(), task.rank()}; }

bool IsUnderWay(v1::TaskPhase phase) { return phase == v1::DUMPING || phase == v1::RESTORING; }

v1::FromAgent Report(const v1::TaskReport& report) {
  v1::FromAgent message;
  *message.mutable_report() = report;
  return message;
}

v1::FromAgent Done(int64_t op) {
  v1::FromAgent message;
  message.mutable_result()->set_op(op);
  return message;
}

}  // namespace

v1::Hello SimulatedNode::Describe() const {
  v1::Hello hello;
  hello.set_node(options_.name);
  hello.set_boot_id("1");
  hello.mutable_capacity()->set_slots(options_.slots);
  hello.mutable_capacity()->set_memory(options_.memory);
  hello.set_criu("simulated");
  hello.set_keeps_connections(true);
  for (const auto& [id, task] : tasks_) *hello.add_tasks() = task.report;
  return hello;
}

v1::Heartbeat SimulatedNode::Measure() const {
  v1::Heartbeat beat;
  beat.set_ram_available(options_.memory - tasks() * options_.task_memory);
  beat.set_local_disk_free(1LL << 40);
  beat.set_shared_disk_free(1LL << 40);
  const double rate = options_.timing.bytes_per_second > 0 ? options_.timing.bytes_per_second : 1e9;
  for (v1::TierRates* rates : {beat.mutable_local(), beat.mutable_shared()}) {
    for (v1::Rate* way : {rates->mutable_dump(), rates->mutable_restore()}) {
      way->set_bytes_per_second(rate);
      way->set_overhead_us(100'000);
      way->set_spread(0.1);
    }
  }
  for (const auto& [id, task] : tasks_) *beat.add_tasks() = task.report;
  return beat;
}

std::vector<v1::FromAgent> SimulatedNode::Take(const v1::ToAgent& command, Time now) {
  if (command.has_verify() || command.has_delete_()) return {Done(command.op())};
  if (!command.has_task()) return {};
  const TaskId id = IdOf(command.task());
  if (command.has_forget()) {
    tasks_.erase(id);
    return {};
  }
  const bool starts = command.has_launch() || command.has_restore();
  if (!starts && !tasks_.contains(id)) return {};
  Task& task = tasks_[id];
  *task.report.mutable_task() = command.task();
  Obey(task, command, now);
  if (task.due && *task.due <= now) Finish(task, now);
  return {Report(task.report)};
}

void SimulatedNode::Obey(Task& task, const v1::ToAgent& command, Time now) {
  const SimulatedTiming& timing = options_.timing;
  const v1::TaskPhase phase = task.report.phase();
  const bool whole = phase == v1::RUNNING || phase == v1::SUSPENDED;
  switch (command.what_case()) {
    case v1::ToAgent::kLaunch:
      if (phase == v1::TASK_PHASE_UNSPECIFIED)
        Start(task, command.launch().spec(), v1::LAUNCHING, timing.launch, now);
      break;
    case v1::ToAgent::kRestore:
      if (phase != v1::TASK_PHASE_UNSPECIFIED) break;
      Start(task, command.restore().spec(), v1::RESTORING, Copying(), now);
      task.report.set_checkpoint(command.restore().checkpoint());
      break;
    case v1::ToAgent::kSuspend:
      if (phase == v1::RUNNING) Begin(task, phase, timing.freeze, v1::SUSPENDED, now);
      break;
    case v1::ToAgent::kResume:
      if (phase == v1::SUSPENDED) Begin(task, phase, timing.freeze, v1::RUNNING, now);
      break;
    case v1::ToAgent::kDump:
      if (whole) Dump(task, command, now);
      break;
    case v1::ToAgent::kCommit:
      if (phase != v1::PREPARED || command.op() != task.report.op()) break;
      task.report.set_committed_op(command.op());
      task.next = v1::BARRIER_LEAVE;
      Begin(task, phase, timing.freeze,
            task.leaves_together ? v1::PREPARED
            : !task.keep_running ? v1::CHECKPOINTED
            : task.frozen        ? v1::SUSPENDED
                                 : v1::RUNNING,
            now);
      break;
    case v1::ToAgent::kAbort:
      if (phase == v1::DUMPING || phase == v1::PREPARED)
        Begin(task, phase, Duration(0), task.frozen ? v1::SUSPENDED : v1::RUNNING, now);
      break;
    case v1::ToAgent::kPassBarrier:
      if (task.report.barrier() == command.pass_barrier().barrier()) Pass(task, now);
      break;
    case v1::ToAgent::kJoinNetwork:
      task.report.set_joined(command.join_network().refused().empty());
      break;
    case v1::ToAgent::kAllJoined:
      if (phase == v1::RESTORING && task.report.joined()) Begin(task, phase, timing.freeze, v1::RUNNING, now);
      break;
    case v1::ToAgent::kKill:
      task.report.set_exit_signal(15);
      Begin(task, phase, timing.freeze, v1::EXITED, now);
      break;
    default:
      break;  // the simulated jobs do not save themselves
  }
}

void SimulatedNode::Start(Task& task, const v1::JobSpec& spec, v1::TaskPhase phase, Duration takes,
                          Time now) {
  task.report.set_memory(options_.task_memory);
  if (spec.hold_us() > 0) {
    task.run = Duration(spec.hold_us());
  } else if (options_.timing.mean_run > Duration(0)) {
    task.run = DrawRun(task.report.task(), options_.timing.mean_run);
  }
  task.keeps_connections = spec.keep_connections();
  // Restored, its ranks wait until all of them are joined.
  const bool waits = task.keeps_connections && phase == v1::RESTORING;
  Begin(task, phase, takes, waits ? v1::RESTORING : v1::RUNNING, now);
}

void SimulatedNode::Dump(Task& task, const v1::ToAgent& command, Time now) {
  task.frozen = task.report.phase() == v1::SUSPENDED;
  task.keep_running = command.dump().keep_running();
  task.leaves_together = command.dump().leaves_together();
  task.next = v1::BARRIER_NONE;
  task.report.set_op(command.op());
  task.report.set_checkpoint(command.dump().checkpoint());
  task.report.set_image_bytes(options_.task_memory);
  StopRunning(task, now);
  if (command.dump().together() && task.keep_running) return ComeTo(task, v1::BARRIER_STOP, Duration(0), now);
  if (command.dump().together() && task.keeps_connections)
    return ComeTo(task, v1::BARRIER_HOLD, options_.timing.freeze, now);
  Begin(task, v1::DUMPING, Copying(), v1::PREPARED, now);
}

void SimulatedNode::ComeTo(Task& task, v1::DumpBarrier barrier, Duration takes, Time now) {
  task.next = barrier;
  Begin(task, v1::DUMPING, takes, v1::DUMPING, now);
}

// What comes after the barrier at which it is.
void SimulatedNode::Pass(Task& task, Time now) {
  const v1::DumpBarrier at = task.report.barrier();
  if (at == v1::BARRIER_LEAVE) return Begin(task, v1::PREPARED, Duration(0), v1::CHECKPOINTED, now);
  if (at == v1::BARRIER_STOP && task.keeps_connections)
    return ComeTo(task, v1::BARRIER_HOLD, options_.timing.freeze, now);
  if (at != v1::BARRIER_RUN_ON && task.keep_running) return ComeTo(task, v1::BARRIER_RUN_ON, Copying(), now);
  task.report.set_runs_on(at == v1::BARRIER_RUN_ON);
  Begin(task, v1::DUMPING, at == v1::BARRIER_RUN_ON ? Duration(0) : Copying(), v1::PREPARED, now);
}

// A repeated command has no effect: what is under way continues.
void SimulatedNode::Begin(Task& task, v1::TaskPhase phase, Duration takes, v1::TaskPhase then, Time now) {
  if (task.due && task.then == then) return;
  task.report.set_phase(phase);
  task.then = then;
  task.due = now + takes;
  task.told = now;
}

void SimulatedNode::Finish(Task& task, Time now) {
  const bool was_running = task.report.phase() == v1::RUNNING;
  task.due.reset();
  task.report.set_phase(task.then);
  const bool is_dumped = task.then == v1::DUMPING || task.then == v1::PREPARED;
  if (!is_dumped) {
    task.report.clear_op();
    task.report.clear_runs_on();
  }
  if (task.then == v1::DUMPING || (task.then == v1::PREPARED && task.next == v1::BARRIER_LEAVE))
    task.report.set_barrier(task.next);
  else
    task.report.clear_barrier();
  const bool has_network = task.then == v1::RUNNING || task.then == v1::RESTORING;
  if (task.keeps_connections && has_network && !task.report.has_endpoint()) {
    v1::GangEndpoint& endpoint = *task.report.mutable_endpoint();
    endpoint.set_rank(task.report.task().rank());
    endpoint.set_address("127.0.0.1");
    endpoint.set_port(4789);
    endpoint.set_vni(1 + task.report.task().rank());
  }
  if (task.then == v1::RUNNING && !was_running) {
    if (task.report.started_us() == 0) task.report.set_started_us(ToMicros(now));
    if (task.run > Duration(0)) task.ends = now + task.run;
  } else {
    StopRunning(task, now);
  }
}

// A frozen task has as much before it as it had.
void SimulatedNode::StopRunning(Task& task, Time now) {
  if (!task.ends) return;
  task.run = std::max(Duration(1), std::chrono::duration_cast<Duration>(*task.ends - now));
  task.ends.reset();
}

std::vector<v1::FromAgent> SimulatedNode::Advance(Time now) {
  std::vector<v1::FromAgent> said;
  for (auto& [id, task] : tasks_) {
    if (task.ends && *task.ends <= now) {
      task.ends.reset();
      task.due.reset();
      task.report.clear_op();
      task.report.set_phase(v1::EXITED);
      task.report.set_own_end(true);
      said.push_back(Report(task.report));
    } else if (task.due && *task.due <= now) {
      Finish(task, now);
      said.push_back(Report(task.report));
    } else if (IsUnderWay(task.report.phase()) && task.due && now - *task.told >= kProgressEvery) {
      said.push_back(ProgressOf(task, now));
    }
  }
  return said;
}

v1::FromAgent SimulatedNode::ProgressOf(Task& task, Time now) const {
  task.told = now;
  v1::FromAgent message;
  v1::Progress& progress = *message.mutable_progress();
  *progress.mutable_task() = task.report.task();
  progress.set_op(task.report.op());
  progress.set_bytes_total(options_.task_memory);
  const double left = ToSeconds(*task.due - now) * options_.timing.bytes_per_second;
  progress.set_bytes_done(options_.task_memory - static_cast<int64_t>(left));
  progress.set_bytes_per_second(options_.timing.bytes_per_second);
  return message;
}

std::optional<Time> SimulatedNode::NextDue() const {
  std::optional<Time> next;
  const auto consider = [&](Time at) { next = next ? std::min(*next, at) : at; };
  for (const auto& [id, task] : tasks_) {
    if (task.ends) consider(*task.ends);
    if (task.due) consider(*task.due);
    if (IsUnderWay(task.report.phase()) && task.due) consider(*task.told + kProgressEvery);
  }
  return next;
}

Duration SimulatedNode::Copying() const {
  const double rate = options_.timing.bytes_per_second;
  return rate > 0 ? FromSeconds(static_cast<double>(options_.task_memory) / rate) : Duration(0);
}

}  // namespace siding
