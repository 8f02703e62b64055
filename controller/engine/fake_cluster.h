// A cluster of agents that exists only in memory, for tests of the engine: it takes the engine's commands,
// does at once what a real agent would do in time, and reports. Faults are asked for by name.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "controller/engine/engine.h"

namespace siding {

// Not thread-safe.
class FakeCluster final : public AgentLink {
 public:
  explicit FakeCluster(const Clock& clock) : clock_(&clock) {}
  void Attach(Engine& engine) { engine_ = &engine; }

  void AddNode(const std::string& name, int slots = 4, int gpus = 0) {
    slots_[NodeId(name)] = slots;
    gpus_[NodeId(name)] = gpus;
    Connect(name);
  }
  void Connect(const std::string& name) {
    const NodeId node(name);
    v1::Hello hello;
    hello.set_node(name);
    hello.mutable_capacity()->set_slots(slots_[node]);
    hello.mutable_capacity()->set_memory(8LL << 30);
    hello.mutable_capacity()->set_gpus(gpus_[node]);
    hello.set_agent(agents[name]);
    hello.set_problem(problems[name]);
    hello.set_keeps_connections(!no_networks.contains(name));
    if (in_memory.contains(name)) *hello.mutable_kept() = KeptOn(name);
    hello.set_has_shared(has_shared);
    for (const auto& [key, report] : tasks_) {
      if (key.first == node) *hello.add_tasks() = report;
    }
    for (const v1::TaskReport& report : others[name]) *hello.add_tasks() = report;
    connected_.insert(node);
    engine_->OnConnected(node, hello).IgnoreError();
    Heartbeat(name);
  }
  // With the tasks as they are now.
  void Heartbeat(const std::string& name) {
    const NodeId node(name);
    v1::FromAgent message;
    v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
    heartbeat.set_ram_available(8LL << 30);
    heartbeat.set_problem(problems[name]);
    heartbeat.set_local_disk_free(local_disk_free);
    heartbeat.set_shared_disk_free(shared_disk_free);
    for (v1::TierRates* rates :
         {heartbeat.mutable_local(), heartbeat.mutable_shared(), heartbeat.mutable_gpu()}) {
      rates->mutable_dump()->set_bytes_per_second(1e9);
      rates->mutable_restore()->set_bytes_per_second(1e9);
    }
    heartbeat.mutable_shared()->mutable_dump()->set_bytes_per_second(shared_bytes_per_second);
    if (copying.contains(name)) heartbeat.add_copies()->set_checkpoint(copying[name]);
    heartbeat.mutable_gpu()->mutable_dump()->set_bytes_per_second(gpu_bytes_per_second);
    for (auto& [key, report] : tasks_) {
      if (key.first == node) *heartbeat.add_tasks() = report;
    }
    engine_->OnMessage(node, message);
  }
  // Its agent is restarted, which undoes dumps that were not committed.
  void Restart(const std::string& name) {
    for (auto& [key, report] : tasks_) {
      const bool dumping = report.phase() == v1::DUMPING || report.phase() == v1::PREPARED;
      if (key.first != NodeId(name) || !dumping) continue;
      report.set_phase(frozen_.contains(key) ? v1::SUSPENDED : v1::RUNNING);
      report.set_failed_op(report.op());
      report.clear_op();
      report.clear_barrier();
      report.clear_runs_on();
    }
    Connect(name);
  }
  void Disconnect(const std::string& name) {
    connected_.erase(NodeId(name));
    engine_->OnDisconnected(NodeId(name));
  }

  void Send(const NodeId& node, v1::ToAgent command) override {
    if (connected_.contains(node)) queue_.emplace_back(node, std::move(command));
  }

  // Carries out every command that waits, and those that follow from the reports.
  void Run() {
    while (!queue_.empty()) {
      auto [node, command] = std::move(queue_.front());
      queue_.pop_front();
      commands_.push_back(command);
      Execute(node, command);
    }
  }
  // One command only. False if none waits.
  bool Step() {
    if (queue_.empty()) return false;
    auto [node, command] = std::move(queue_.front());
    queue_.pop_front();
    commands_.push_back(command);
    Execute(node, command);
    return true;
  }
  // Such commands that wait.
  int Waiting(v1::ToAgent::WhatCase what) const {
    return static_cast<int>(std::count_if(queue_.begin(), queue_.end(), [&](const auto& command) {
      return command.second.what_case() == what;
    }));
  }
  void LoseQueue() { queue_.clear(); }

  // A cluster manager starts a task of a job of its own; from an image if one is named.
  void StartManaged(const std::string& name, const v1::JobSpec& spec, int64_t job, int incarnation,
                    const std::string& checkpoint = "", int rank = 0) {
    const NodeId node(name);
    v1::TaskReport& report = tasks_[{node, TaskId{JobId(job), incarnation, rank}}];
    report.mutable_task()->set_job(job);
    report.mutable_task()->set_rank(rank);
    report.mutable_task()->set_incarnation(incarnation);
    *report.mutable_spec() = spec;
    report.set_phase(managed_phase);
    report.set_started_us(ToMicros(clock_->Now() + clock_off));
    report.set_checkpoint(checkpoint);
    report.set_memory(memory);
    NoteNetwork(report, node, spec);
    Report(node, v1::TaskReport(report));
  }

  // Something was done to its tasks that its owner should know.
  void Note(JobId job, const std::string& text) {
    for (auto& [key, report] : tasks_) {
      if (key.second.job != job) continue;
      report.add_notes(text);
      Report(key.first, report);
    }
  }

  // The task ends by itself, after the kernel had killed so many of its processes for lack of memory.
  void Exit(JobId job, int rank, int code, int killed_for_memory = 0) {
    for (auto& [key, report] : tasks_) {
      if (key.second.job != job || key.second.rank != rank) continue;
      // A dump that has died may have let it run on.
      const bool runs =
          report.phase() == v1::RUNNING || report.runs_on() || report.barrier() == v1::BARRIER_LEAVE;
      if (!runs) continue;
      report.clear_barrier();
      report.set_phase(v1::EXITED);
      report.set_exit_code(code);
      report.set_own_end(true);
      report.set_killed_for_memory(killed_for_memory);
      Report(key.first, report);
    }
  }

  // A dump of it has died, and it runs on.
  void RunOn(const std::string& name) {
    for (auto& [key, report] : tasks_) {
      if (key.first != NodeId(name) || report.barrier() != v1::BARRIER_LEAVE) continue;
      report.set_phase(v1::RUNNING);
      report.set_failed_op(report.op());
      report.clear_op();
      report.clear_barrier();
      Report(key.first, report);
    }
  }

  // It ran for a moment although it is frozen, and ended.
  void ExitFrozen(JobId job) {
    for (auto& [key, report] : tasks_) {
      if (key.second.job != job || report.phase() != v1::SUSPENDED) continue;
      report.set_phase(v1::EXITED);
      report.set_own_end(true);
      Report(key.first, report);
    }
  }

  // The node has read that image back.
  void FindDamaged(const std::string& name, const std::string& checkpoint, int rank = 0,
                   v1::Tier tier = v1::SHARED) {
    v1::FromAgent message;
    v1::DamagedImage& image = *message.mutable_heartbeat()->add_damaged();
    image.set_checkpoint(checkpoint);
    image.set_tier(tier);
    image.set_rank(rank);
    image.set_problem("pages-1.img is damaged");
    engine_->OnMessage(NodeId(name), message);
  }

  // It says which images its local tier has.
  void SayKept(const std::string& name) {
    v1::FromAgent message;
    v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
    heartbeat.set_local_in_memory(true);
    *heartbeat.mutable_kept() = KeptOn(name);
    engine_->OnMessage(NodeId(name), message);
    Heartbeat(name);
  }

  // How far the job's dumps are, as one rank's agent sees it.
  void Progress(JobId job, int64_t done, int64_t total, double bytes_per_second) {
    for (const auto& [key, report] : tasks_) {
      if (key.second.job != job || report.phase() != v1::DUMPING) continue;
      v1::FromAgent message;
      v1::Progress& progress = *message.mutable_progress();
      *progress.mutable_task() = report.task();
      progress.set_bytes_done(done);
      progress.set_bytes_total(total);
      progress.set_bytes_per_second(bytes_per_second);
      engine_->OnMessage(key.first, message);
    }
  }

  // A report that says this of each of its tasks, whatever is so.
  void Report(JobId job, v1::TaskPhase phase) {
    for (const auto& [key, report] : tasks_) {
      if (key.second.job != job) continue;
      v1::TaskReport said = report;
      said.set_phase(phase);
      Report(key.first, said);
    }
  }

  // The dump under way on that node does.
  void ComeToBarrier(const std::string& name, v1::DumpBarrier barrier) {
    for (auto& [key, report] : tasks_) {
      if (key.first != NodeId(name) || report.phase() != v1::DUMPING) continue;
      report.set_barrier(barrier);
      Report(key.first, report);
    }
  }

  // Its processes are gone and nobody saw how; those of one rank, or of all.
  void Vanish(JobId job, int rank = -1) {
    for (auto& [key, report] : tasks_) {
      const bool runs = report.phase() == v1::RUNNING || report.barrier() == v1::BARRIER_LEAVE;
      if (key.second.job != job || !runs || (rank >= 0 && key.second.rank != rank)) continue;
      report.clear_barrier();
      report.set_phase(v1::LOST);
      Report(key.first, report);
    }
  }

  // Empty if there was none.
  v1::ToAgent Last(v1::ToAgent::WhatCase what) const {
    const auto last = std::find_if(commands_.rbegin(), commands_.rend(),
                                   [&](const v1::ToAgent& command) { return command.what_case() == what; });
    return last == commands_.rend() ? v1::ToAgent() : *last;
  }
  v1::Launch LastLaunch() const { return Last(v1::ToAgent::kLaunch).launch(); }

  int Count(v1::ToAgent::WhatCase what) const {
    int n = 0;
    for (const v1::ToAgent& command : commands_) n += command.what_case() == what;
    return n;
  }

  // Tasks of it that run, wherever and since whenever.
  int In(JobId job, v1::TaskPhase phase) const {
    return static_cast<int>(std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& task) {
      return task.first.second.job == job && task.second.phase() == phase;
    }));
  }
  int Running(JobId job) const { return In(job, v1::RUNNING); }

  std::map<std::string, std::vector<v1::TaskReport>>
      others;                                   // that a node also has when it dials; no order is for them
  std::set<std::string> fail_start;             // nodes that cannot start anything
  std::set<JobId> bad_jobs;                     // that no node can start, and takes for its own fault
  std::set<JobId> broken_jobs;                  // that cannot be started, for reasons of their own
  std::map<std::string, std::string> problems;  // that a node says it has
  std::map<std::string, std::string> agents;    // by node, as they call themselves
  std::set<std::string> missing_files;          // nodes on which something that every job needs is missing
  std::set<std::string> fail_restore;           // nodes on which criu restores nothing
  std::set<std::string> fail_dump;              // nodes on which a dump fails
  std::set<std::string> fail_shared;            // nodes on which no image can be written to the shared tier
  std::set<std::string> fail_commit;  // nodes that cannot record that an image counts; they undo the dump
  std::set<std::string> slow_leave;   // nodes whose ranks do not leave, though they may
  std::set<std::string> slow_commit;  // nodes that cannot either, and hold the task until they can
  std::set<std::string> fail_delete;  // nodes on which no image can be deleted
  std::map<std::string, absl::StatusCode> copies;  // nodes that copy images, and what comes of it
  // Nodes whose local tier is in memory, and the images in it: checkpoint and agents' rank.
  std::map<std::string, std::set<std::pair<CheckpointId, int>>> in_memory;
  bool has_shared = true;
  std::map<std::string, std::string> copying;  // nodes that say they are at it, and which checkpoint
  std::set<std::string> slow_dump;             // nodes on which a dump begins and does not end
  std::set<std::string>
      slow_capture;  // nodes on which one that is together does not come to its last barrier
  std::set<std::string> fail_capture;        // nodes on which it fails there
  std::set<std::string> no_networks;         // nodes that keep no connections
  std::set<std::string> slow_join;           // nodes whose agents do not join a rank's network yet
  std::map<TaskId, v1::JoinNetwork> joined;  // to which networks that of a task was joined last
  std::set<std::string> no_barriers;         // nodes whose agents know of none
  std::set<std::string> slow_behind;  // nodes on which an image is not finished behind a task that runs on
  Duration stopped{0};                // said of a dump after which its task runs on
  std::map<std::string, Duration> waited;  // said of images, by node: for other ranks
  Bytes new_bytes;                         // said of images; 0: all of their bytes are
  std::set<std::string> fail_suspend;      // nodes on which a freeze fails
  std::set<std::string> slow_suspend;      // nodes on which a freeze begins and does not end
  std::string gpu_state_lost;              // said by every task that is to continue after a freeze
  std::set<std::string> fail_resume;       // nodes on which a frozen task cannot continue
  std::set<std::string> slow_resume;       // nodes on which a frozen task takes its time to continue
  std::set<std::string> fail_kill;         // nodes on which a task may not be ended
  std::set<std::string> slow_kill;         // nodes on which a task that is to end stays
  std::set<std::string> holds_kill;        // nodes on which it stays until its manager ends it
  std::set<std::string> long_notice;       // nodes on which notice of a freeze does not come to its end
  std::set<std::string> damaged;           // checkpoints whose images do not verify
  std::set<std::string> damaged_disks;     // nodes on whose own disk none does
  bool damaged_shared = false;             // none in shared storage does
  std::set<std::string> refused;           // checkpoints that criu does not take
  std::set<std::string> takes_refused;     // nodes whose criu does
  std::set<std::string> keep_gpus;         // nodes on which a frozen task still has its GPUs
  std::string cannot_drain;                // said of every task
  std::string timer;                       // said of every task
  bool fail_restart = false;               // from what a program saved itself
  bool no_gpu = false;                     // for any restore
  bool no_key = false;                     // for any image
  Duration clock_off{0};                   // of all nodes, against the controller's
  int64_t memory = 1 << 20;                // resident bytes of every task
  double shared_bytes_per_second = 1e9;    // at which an image is written there
  double gpu_bytes_per_second = 1e9;       // at which what is on GPUs leaves them; 0: not measured
  int64_t local_disk_free = 100LL << 30, shared_disk_free = 100LL << 30;  // as every node says
  int64_t gpu_memory = 0;                                                 // of every task on GPUs
  int64_t gpu_lock_us = 0;                                                // that every task expects
  std::string cannot_checkpoint;  // why, of every task; empty: it can be
  // Of a manager's task, as it is reported first.
  v1::TaskPhase managed_phase = v1::RUNNING;

 private:
  using Key = std::pair<NodeId, TaskId>;

  void Report(const NodeId& node, const v1::TaskReport& report) {
    if (!connected_.contains(node)) return;
    v1::FromAgent message;
    *message.mutable_report() = report;
    engine_->OnMessage(node, message);
  }

  // A rank's network is reached at another endpoint after each start.
  void NoteNetwork(v1::TaskReport& report, const NodeId& node, const v1::JobSpec& spec) {
    report.clear_endpoint();
    report.clear_joined();
    if (!spec.keep_connections()) return;
    report.mutable_endpoint()->set_rank(report.task().rank() % kRanksPerStep);
    report.mutable_endpoint()->set_address(node.value());
    report.mutable_endpoint()->set_vni(++networks_made_);
  }

  void Join(const NodeId& node, const TaskId& id, const v1::JoinNetwork& network) {
    const auto task = tasks_.find({node, id});
    const bool runs = task != tasks_.end() &&
                      (task->second.phase() == v1::RUNNING || task->second.phase() == v1::RESTORING);
    if (!runs || slow_join.contains(node.value())) return;
    joined[id] = network;
    task->second.set_joined(network.refused().empty());
    task->second.set_not_joined(network.refused());
    Report(node, v1::TaskReport(task->second));
  }

  v1::KeptImages KeptOn(const std::string& name) const {
    v1::KeptImages kept;
    for (const auto& [checkpoint, rank] : in_memory.at(name)) {
      v1::KeptImage& image = *kept.add_images();
      image.set_checkpoint(checkpoint.value());
      image.set_rank(rank);
    }
    return kept;
  }

  void Execute(const NodeId& node, const v1::ToAgent& command) {
    const TaskId id{JobId(command.task().job()), command.task().incarnation(), command.task().rank()};
    if (command.task().cluster() != 0) return;
    if (command.has_verify() || command.has_delete_()) {
      v1::FromAgent message;
      message.mutable_result()->set_op(command.op());
      if (command.has_delete_() && fail_delete.contains(node.value()))
        message.mutable_result()->set_code(static_cast<int>(absl::StatusCode::kUnavailable));
      if (command.has_verify() && damaged.contains(command.verify().checkpoint())) {
        message.mutable_result()->set_code(static_cast<int>(absl::StatusCode::kDataLoss));
        message.mutable_result()->set_message("pages-1.img is damaged");
      }
      engine_->OnMessage(node, message);
      return;
    }
    if (command.has_copy()) return Copy(node, command);
    if (command.has_join_network()) return Join(node, id, command.join_network());
    v1::TaskReport& report = tasks_[{node, id}];
    *report.mutable_task() = command.task();
    report.set_memory(memory);
    report.set_cannot_drain(cannot_drain);
    report.set_cannot_checkpoint(cannot_checkpoint);
    report.set_timer(timer);
    report.set_gpu_lock_us(gpu_lock_us);
    report.clear_op();
    report.clear_barrier();
    if (!command.has_commit()) report.clear_runs_on();
    // Running or frozen, as it was before.
    const auto whole = [&] { return frozen_.contains({node, id}) ? v1::SUSPENDED : v1::RUNNING; };
    const auto fail = [&](const std::string& error) {
      report.set_phase(whole());
      report.set_failed_op(command.op());
      report.set_error(error);
      report.clear_tier_problem();
    };
    const auto stop_at = [&](v1::DumpBarrier barrier) {
      report.set_phase(v1::DUMPING);
      report.set_op(command.op());
      report.set_barrier(barrier);
    };
    const auto wait_to_leave = [&] {
      report.set_op(command.op());
      report.set_barrier(v1::BARRIER_LEAVE);
    };
    const auto prepare = [&] {
      report.set_phase(v1::PREPARED);
      report.set_op(command.op());
      report.set_image_bytes(memory);
      report.set_image_new_bytes(new_bytes.value > 0 ? new_bytes.value : memory);
      report.set_image_digest(absl::StrFormat("%064x", ++images_made_));
      if (const auto its = waited.find(node.value()); its != waited.end())
        report.set_waited_us(its->second.count());
      if (keep_running_[{node, id}]) report.set_stopped_us(stopped.count());
    };
    switch (command.what_case()) {
      case v1::ToAgent::kLaunch:
        if (fail_start.contains(node.value()) || bad_jobs.contains(id.job)) {
          report.set_phase(v1::LAUNCH_FAILED);
          report.set_error("its disk is full");
          report.set_node_problem(true);
          break;
        }
        if (broken_jobs.contains(id.job)) {
          report.set_phase(v1::LAUNCH_FAILED);
          report.set_error("no such program");
          break;
        }
        if (missing_files.contains(node.value())) {
          report.set_phase(v1::LAUNCH_FAILED);
          report.set_error("cannot enter the working folder /w");
          report.set_outside_problem(true);
          break;
        }
        if (fail_restart && command.launch().restart_after_save()) {
          report.set_phase(v1::LAUNCH_FAILED);
          report.set_error("cannot run /restart");
          break;
        }
        TakeGpus(report, command.launch().spec().per_node().gpus());
        NoteNetwork(report, node, command.launch().spec());
        report.set_phase(v1::RUNNING);
        report.set_started_us(ToMicros(clock_->Now() + clock_off));
        break;
      case v1::ToAgent::kRestore:
        if (no_gpu || no_key) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error(no_gpu ? "no GPU is free" : "the image is encrypted");
          report.set_no_gpu(no_gpu);
          report.set_no_key(no_key);
        } else if (!command.restore().image_digest().empty() &&
                   command.restore().image_digest() != digests_[{command.restore().checkpoint(), id.rank}]) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("the image has been replaced");
          report.set_image_damaged(true);
        } else if (damaged.contains(command.restore().checkpoint())) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("pages-1.img: checksum differs");
          report.set_image_damaged(true);
        } else if (command.restore().tier() == v1::LOCAL ? damaged_disks.contains(node.value())
                                                         : damaged_shared) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("pages-1.img: checksum differs here");
          report.set_image_damaged(true);
        } else if (missing_files.contains(node.value())) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("file /w/log has vanished since the checkpoint");
          report.set_outside_problem(true);
        } else if (refused.contains(command.restore().checkpoint()) &&
                   !takes_refused.contains(node.value())) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("criu: Can't restore mapping");
          report.set_image_refused(true);
        } else if (fail_restore.contains(node.value())) {
          report.set_phase(v1::RESTORE_FAILED);
          report.set_error("criu: a port is in use");
        } else {
          TakeGpus(report, command.restore().spec().per_node().gpus());
          NoteNetwork(report, node, command.restore().spec());
          report.set_phase(v1::RUNNING);
          report.set_started_us(ToMicros(clock_->Now() + clock_off));
        }
        break;
      case v1::ToAgent::kDump:
        if (fail_dump.contains(node.value())) {
          fail("io_uring is open");
        } else if (command.dump().tier() == v1::SHARED && fail_shared.contains(node.value())) {
          fail("checkpoint store /shared does not take it");
          report.set_tier_problem(true);
        } else if (slow_dump.contains(node.value())) {
          report.set_checkpoint(command.dump().checkpoint());
          keep_running_[{node, id}] = command.dump().keep_running();
          report.set_phase(v1::DUMPING);
          report.set_op(command.op());
        } else {
          report.set_checkpoint(command.dump().checkpoint());
          keep_running_[{node, id}] = command.dump().keep_running();
          leaves_together_[{node, id}] =
              command.dump().leaves_together() && !no_barriers.contains(node.value());
          const bool waits = command.dump().together() && !no_barriers.contains(node.value());
          waits ? stop_at(v1::BARRIER_STOP) : prepare();
        }
        break;
      case v1::ToAgent::kPassBarrier:
        if (command.pass_barrier().barrier() == v1::BARRIER_LEAVE) {
          if (slow_leave.contains(node.value()))
            wait_to_leave();
          else
            report.set_phase(v1::CHECKPOINTED);
        } else if (command.pass_barrier().barrier() == v1::BARRIER_RUN_ON) {
          report.set_runs_on(true);
          slow_behind.contains(node.value()) ? stop_at(v1::BARRIER_RUN_ON) : prepare();
        } else if (fail_capture.contains(node.value())) {
          fail("criu has failed");
        } else {
          stop_at(slow_capture.contains(node.value()) ? v1::BARRIER_STOP : v1::BARRIER_RUN_ON);
        }
        break;
      case v1::ToAgent::kCommit:
        if (fail_commit.contains(node.value())) {
          fail("No space left on device");
          break;
        }
        if (slow_commit.contains(node.value())) {
          report.set_op(command.op());
          break;
        }
        report.set_committed_op(command.op());
        digests_[{report.checkpoint(), id.rank}] = report.image_digest();
        if (leaves_together_[{node, id}]) {
          wait_to_leave();
          break;
        }
        report.set_phase(keep_running_[{node, id}] ? v1::RUNNING : v1::CHECKPOINTED);
        break;
      case v1::ToAgent::kAbort:
        if (report.phase() == v1::PREPARED && leaves_together_[{node, id}])
          fail("the checkpoint was called off");
        else if (report.phase() != v1::LAUNCHING)
          report.set_phase(whole());
        break;
      case v1::ToAgent::kResume:
        if (slow_resume.contains(node.value())) return;
        if (fail_resume.contains(node.value()) || !gpu_state_lost.empty()) {
          fail("it does not thaw");
          report.set_gpu_state_lost(gpu_state_lost);
          break;
        }
        frozen_.erase({node, id});
        TakeGpus(report, gpus_of_[id]);
        report.set_phase(v1::RUNNING);
        break;
      case v1::ToAgent::kSuspend:
        if (slow_suspend.contains(node.value())) return;
        if (fail_suspend.contains(node.value())) {
          fail("no freezer");
        } else if (long_notice.contains(node.value()) && command.suspend().notice_us() > 0) {
          report.set_op(command.op());
        } else {
          frozen_.insert({node, id});
          gpus_of_[id] = report.gpus_size();
          if (!keep_gpus.contains(node.value())) {
            report.clear_gpus();
            report.clear_gpu_memory();
          }
          report.set_phase(v1::SUSPENDED);
        }
        break;
      case v1::ToAgent::kSave:
        if (command.save().keep_running()) {
          report.set_committed_op(command.op());
        } else {
          report.set_phase(v1::SAVED);
        }
        break;
      case v1::ToAgent::kKill:
        if (fail_kill.contains(node.value())) {
          const v1::TaskPhase phase = report.phase();
          fail("a disruption budget");
          if (phase == v1::LAUNCHING || phase == v1::RESTORING) {
            report.set_phase(phase);
            report.set_op(command.op());  // it is held, and can be taken back
          }
          break;
        }
        if (slow_kill.contains(node.value())) break;
        if (holds_kill.contains(node.value())) {
          report.set_op(command.op());
          break;
        }
        if (report.phase() == v1::EXITED) break;
        report.set_phase(v1::EXITED);
        report.set_exit_signal(15);
        break;
      case v1::ToAgent::kForget:
        tasks_.erase({node, id});
        return;
      default:
        return;
    }
    Report(node, v1::TaskReport(report));
  }

  void Copy(const NodeId& node, const v1::ToAgent& command) {
    if (!copies.contains(node.value())) return;
    v1::FromAgent message;
    message.mutable_result()->set_op(command.op());
    message.mutable_result()->set_code(static_cast<int>(copies[node.value()]));
    message.mutable_result()->set_message("as it was asked for");
    engine_->OnMessage(node, message);
  }

  void TakeGpus(v1::TaskReport& report, int count) const {
    report.clear_gpus();
    for (int i = 0; i < count; ++i) report.add_gpus("GPU-" + std::to_string(i));
    if (count > 0) report.set_gpu_memory(gpu_memory);
  }

  const Clock* clock_;
  Engine* engine_ = nullptr;
  std::map<NodeId, int> slots_;
  std::map<NodeId, int> gpus_;
  std::set<NodeId> connected_;
  std::map<Key, v1::TaskReport> tasks_;
  std::map<Key, bool> keep_running_;
  std::map<Key, bool> leaves_together_;
  std::map<std::pair<std::string, int>, std::string> digests_;  // of visible images, by checkpoint and rank
  uint64_t images_made_ = 0;
  int networks_made_ = 0;
  std::set<Key> frozen_;
  std::map<TaskId, int> gpus_of_;  // of frozen tasks: that they had
  std::deque<std::pair<NodeId, v1::ToAgent>> queue_;
  std::vector<v1::ToAgent> commands_;
};

}  // namespace siding
