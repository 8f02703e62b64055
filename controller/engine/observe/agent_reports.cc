#include "controller/engine/observe/agent_reports.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "controller/engine/state/predicates.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// More than any node has; what an agent says beyond this is not kept.
constexpr size_t kMostTasksOfANode = 100'000;
// What is kept of one node's tasks, in bytes. An agent tells of all of them in 3 MiB.
constexpr size_t kMostKept = 32 * kMiB;

// Shown to every user who lists the nodes.
v1::Hello ToKeep(v1::Hello hello) {
  hello.clear_tasks();
  hello.clear_kept();
  for (std::string* text :
       {hello.mutable_boot_id(), hello.mutable_version(), hello.mutable_criu(), hello.mutable_criu_problem(),
        hello.mutable_gpu_problem(), hello.mutable_fence_problem(), hello.mutable_no_network(),
        hello.mutable_problem()})
    *text = Cut(*text);
  for (v1::Gpu& gpu : *hello.mutable_gpus()) {
    gpu.set_uuid(Cut(gpu.uuid()));
    gpu.set_name(Cut(gpu.name()));
  }
  hello.DiscardUnknownFields();
  return hello;
}

}  // namespace

absl::Status AgentReports::OnConnected(const NodeId& node, const v1::Hello& hello) {
  ObservedNode& observed = observed_.observed_nodes[node];
  if (observed.connected) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", node.value(),
                     " has an agent connected already; is another one running with the same name?"));
  }
  if (state_.IsLost(node)) recorder_.Record(JobId(), NodeLost{node, false, {}});
  observed.connected = true;
  observed.silent = false;
  observed.last_heard = observed.last_beat = clock_.Now();
  faults_.OnHello(node, observed, hello);
  observed.hello = ToKeep(hello);
  observed.images_then.clear();
  if (hello.has_kept()) missing_.OnHello(node, hello.kept());
  // The list is whole: a task that is not in it is not there.
  auto& tasks = observed_.observed_tasks[node];
  for (const auto& [id, task] : tasks) agenda_.jobs.insert(id.job);
  tasks.clear();
  observed.kept_bytes = 0;
  starts_.Forget(node);
  observed.foreign.clear();
  orders_.Forget(node);
  copies_.AskAgain(node);
  for (const v1::TaskReport& report : hello.tasks()) {
    const TaskId id = IdOf(report);
    if (id.job.value() <= 0 || id.rank < 0) continue;
    if (IsForeign(report.task())) {
      OnForeign(node, report);
      continue;
    }
    const auto twice = tasks.find(id);
    v1::TaskReport kept = WithShortTexts(report);
    if (!HasRoomFor(node, kept, twice == tasks.end() ? nullptr : &twice->second.report)) continue;
    const v1::TaskReport& said = (tasks[id] = {std::move(kept), 0, std::nullopt}).report;
    agenda_.jobs.insert(id.job);
    tasks_.Follow(node, said);
    steps_.Note(node, said);
    copy_.CatchUp(said);
    copy_.HoldBackBeside(node, id, said.phase());
    RecordNotes(node, said);
  }
  deletions_.AskAgain();
  for (const auto& [id, rank] : state_.index.On(node)) agenda_.jobs.insert(id);
  if (const auto jobs = state_.given_up.find(node); jobs != state_.given_up.end())
    agenda_.jobs.insert(jobs->second.begin(), jobs->second.end());
  accounts_.Touch(node);
  agenda_.schedule = true;
  return absl::OkStatus();
}

void AgentReports::OnDisconnected(const NodeId& node) {
  ObservedNode& observed = observed_.observed_nodes[node];
  observed.connected = false;
  if (!observed.silent) observed.gone_since = clock_.Now();
  observed.silent = false;
  starts_.Forget(node);
  accounts_.Touch(node);
  // Its answers are lost with the connection. Deletions are asked for again.
  verifications_.DropVerifications(node, "went away");
  agenda_.schedule = true;
}

void AgentReports::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  ObservedNode& observed = observed_.observed_nodes[node];
  observed.last_heard = clock_.Now();
  if (message.has_heartbeat()) silence_.OnHeartbeat(node, observed);
  // Reports come again with the next heartbeat; answers that a caller waits for do not.
  if (!recorder_.healthy() && verifications_.AskedOf(message.result().op()) == nullptr) return;
  switch (message.what_case()) {
    case v1::FromAgent::kHeartbeat: {
      const bool first = observed.heartbeat.ram_available() == 0;
      observed.heartbeat = message.heartbeat();
      observed.heartbeat.clear_tasks();
      observed.heartbeat.clear_damaged();
      observed.heartbeat.clear_kept();
      observed.heartbeat.clear_problem();
      if (observed.heartbeat.copies_size() > 0) {
        observed_.copying.insert(node);
      } else {
        observed_.copying.erase(node);
      }
      faults_.OnWord(node, observed, message.heartbeat().problem());
      if (message.heartbeat().has_kept()) missing_.OnKept(node, message.heartbeat().kept());
      for (const v1::DamagedImage& image : message.heartbeat().damaged()) OnDamaged(node, image);
      for (const v1::TaskReport& report : message.heartbeat().tasks()) OnReport(node, report);
      agenda_.schedule |= first;
      break;
    }
    case v1::FromAgent::kReport:
      OnReport(node, message.report());
      break;
    case v1::FromAgent::kProgress: {
      const v1::TaskRef& ref = message.progress().task();
      if (IsForeign(ref)) break;
      auto& tasks = observed_.observed_tasks[node];
      auto it = tasks.find(IdOf(ref));
      if (it != tasks.end()) it->second.progress = message.progress();
      break;
    }
    case v1::FromAgent::kResult:
      OnResult(node, message.result());
      break;
    default:
      break;
  }
}

void AgentReports::RecordNotes(const NodeId& node, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  if (!cluster_.IsPlacedOn(node, id)) return;
  const std::map<int, int>& taken = state_.jobs.at(id.job).notes;
  const auto before = taken.find(id.rank);
  for (int i = before == taken.end() ? 0 : before->second; i < std::min(report.notes_size(), kMostNotes);
       ++i) {
    const std::string text = absl::StrCat("rank ", id.rank, " on ", node.value(), ": ", Cut(report.notes(i)));
    recorder_.Record(id.job, Noted{text, id.rank});
  }
}

// Kept with the node's name and asked for by that name only, so a job is moved by the reports of the nodes
// that it is placed on, and by no others.
void AgentReports::OnReport(const NodeId& node, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  auto& tasks = observed_.observed_tasks[node];
  if (id.job.value() <= 0 || id.rank < 0) return;
  if (IsForeign(report.task())) return OnForeign(node, report);
  v1::TaskReport kept = WithShortTexts(report);
  const auto known = tasks.find(id);
  // A newer heartbeat has overtaken it. A report of a task that does not exist has no version.
  const bool overtaken =
      known != tasks.end() && report.version() != 0 && report.version() < known->second.report.version();
  if (!overtaken && !HasRoomFor(node, kept, known == tasks.end() ? nullptr : &known->second.report)) return;
  accounts_.Touch(node);
  starts_.Forget(node, id);
  ObservedTask& task = tasks[id];
  if (overtaken) return;
  // Heartbeats repeat what is known; the job is looked at only if something has changed.
  const bool news = task.report.phase() != report.phase() || task.report.failed_op() != report.failed_op() ||
                    task.report.committed_op() != report.committed_op() || task.report.op() != report.op() ||
                    task.report.barrier() != report.barrier() || task.report.joined() != report.joined() ||
                    task.report.has_endpoint() != report.has_endpoint() ||
                    task.report.not_joined() != report.not_joined();
  const bool cannot = kept.cannot_checkpoint() != task.report.cannot_checkpoint() ||
                      kept.gpu_state_lost() != task.report.gpu_state_lost();
  const bool others_are_behind = news && !cannot && stragglers_.AreBehind(node, task.report, kept);
  task.report = std::move(kept);
  tasks_.Follow(node, task.report);
  steps_.Note(node, task.report);
  copy_.CatchUp(task.report);
  RecordNotes(node, task.report);
  if (!news && !cannot) return;
  if (!others_are_behind) agenda_.jobs.insert(id.job);
  // A stray that is gone makes room, and no event says so.
  if (IsGone(report.phase())) agenda_.schedule = true;
  if (!IsLive(report.phase()) || report.phase() == v1::RUNNING) task.progress.reset();
}

// Its job's number means another job there.
bool AgentReports::IsForeign(const v1::TaskRef& task) const {
  const int64_t own = recorder_.cluster();
  return own != 0 && task.cluster() != 0 && task.cluster() != own;
}

// Such as of a controller of before, whose journal is no more. It is a user's work, and another's to end.
void AgentReports::OnForeign(const NodeId& node, const v1::TaskReport& report) {
  auto& foreign = observed_.observed_nodes[node].foreign;
  const std::pair<TaskId, int64_t> task{IdOf(report), report.task().cluster()};
  if (foreign.size() >= kMostTasksOfANode && !foreign.contains(task)) return;
  if (foreign.insert(task).second && foreign.size() == 1)
    limited_log_.Warn(
        absl::StrCat("node ", node.value()),
        absl::StrCat("node ", node.value(), " has tasks of another cluster, such as ", ToString(task.first),
                     " of cluster ", absl::Hex(task.second, absl::kZeroPad16), ": they are left alone"));
  strays_.CallOff(node, report);
}

// False: it is left out. No honest agent reports more.
bool AgentReports::HasRoomFor(const NodeId& node, const v1::TaskReport& report,
                              const v1::TaskReport* before) {
  const size_t count = observed_.observed_tasks[node].size();
  size_t& kept = observed_.observed_nodes[node].kept_bytes;
  const size_t others = kept - std::min(kept, before == nullptr ? 0 : before->ByteSizeLong());
  const size_t with_it = others + report.ByteSizeLong();
  if ((before == nullptr && count >= kMostTasksOfANode) || with_it > kMostKept) {
    limited_log_.Warn(
        absl::StrCat("node ", node.value()),
        absl::StrCat("node ", node.value(), " reports more than ", kMostTasksOfANode, " tasks or ", kMostKept,
                     " bytes of them; that of job ", report.task().job(), " is left out"));
    return false;
  }
  kept = with_it;
  return true;
}

// Only from the node that was asked.
void AgentReports::OnResult(const NodeId& node, const v1::OpResult& result) {
  const Verifications::AskedToVerify* verifies = verifications_.AskedOf(result.op());
  if (verifies != nullptr && verifies->node == node) {
    // What it was asked about may be a copy by now, or gone.
    const auto image = state_.checkpoints.find(verifies->verification->checkpoint);
    const bool is_still_there = image != state_.checkpoints.end() && image->second.tier == verifies->tier;
    if (result.code() == static_cast<int>(absl::StatusCode::kDataLoss) && recorder_.healthy() &&
        is_still_there)
      TakeForDamaged(verifies->verification->checkpoint, verifies->rank, node, result.message());
    return verifications_.OnVerified(result);
  }
  const NodeId* deletes = deletions_.AskedOf(result.op());
  if (deletes != nullptr && *deletes == node) return deletions_.OnDeleted(node, result);
  const CopyOrders::AskedToCopy* copies = copies_.AskedOf(result.op());
  if (copies != nullptr && copies->node == node) return OnCopied(*copies, result);
  if (verifies != nullptr || deletes != nullptr || copies != nullptr)
    limited_log_.Warn(absl::StrCat("node ", node.value()),
                      absl::StrCat("node ", node.value(), " answers operation ", result.op(),
                                   ", which it was not asked for"));
}

void AgentReports::OnCopied(const CopyOrders::AskedToCopy& asked, const v1::OpResult& result) {
  const auto [id, rank, node] = asked;
  copies_.OnCopied(result);
  // Of one that is in shared storage by now it says nothing.
  if (result.code() == static_cast<int>(absl::StatusCode::kDataLoss) && IsOnNodesOnly(id))
    return TakeForDamaged(id, rank, node, result.message());
  if (result.code() == static_cast<int>(absl::StatusCode::kNotFound)) return missing_.OnNotFound(id, rank);
  if (result.code() != 0) return;
  missing_.OnCopied(id, rank);
  std::erase_if(observed_.copied_ranks, [&](const auto& copied) { return !IsOnNodesOnly(copied.first); });
  if (!IsOnNodesOnly(id)) return;
  observed_.copied_ranks[id].insert(rank);
  agenda_.jobs.insert(state_.checkpoints.at(id).job);
}

// And counts.
bool AgentReports::IsOnNodesOnly(const CheckpointId& id) const {
  const auto found = state_.checkpoints.find(id);
  return found != state_.checkpoints.end() && found->second.tier == Tier::kLocal &&
         found->second.state == CheckpointState::kGood;
}

// An image that its node has read back. It says so until the image is gone, so this may be the second time.
void AgentReports::OnDamaged(const NodeId& node, const v1::DamagedImage& image) {
  const auto found = state_.checkpoints.find(CheckpointId(image.checkpoint()));
  if (found == state_.checkpoints.end()) return;
  const CheckpointRecord& checkpoint = found->second;
  const int rank = image.rank() - checkpoint.first_rank;
  if (image.tier() == ToProto(checkpoint.tier))
    return TakeForDamaged(checkpoint.id, rank, node, image.problem());
  if (image.tier() == v1::LOCAL) TakeCopiesForDamaged(checkpoint, rank, node, image.problem());
}

// Those in shared storage are good. A restore that reads what is damaged will say so itself.
void AgentReports::TakeCopiesForDamaged(const CheckpointRecord& checkpoint, int rank, const NodeId& node,
                                        const std::string& problem) {
  const bool has_it = rank >= 0 && rank < static_cast<int>(checkpoint.nodes.size()) &&
                      checkpoint.HasCopyOn(node, rank) && !checkpoint.exited.contains(rank);
  if (!has_it || IsRestoringFrom(state_.jobs.at(checkpoint.job), checkpoint.id)) return;
  const std::string why = absl::StrCat("rank ", rank, " on ", node.value(), ": ", Cut(problem));
  recorder_.Record(checkpoint.job, CopiesChanged{checkpoint.id, NodeCopies::kUnwanted, why});
}

void AgentReports::TakeForDamaged(const CheckpointId& id, int rank, const NodeId& node,
                                  const std::string& problem) {
  const auto found = state_.checkpoints.find(id);
  if (found == state_.checkpoints.end() || found->second.state != CheckpointState::kGood) return;
  const CheckpointRecord& checkpoint = found->second;
  // Of its own images only: a node must not take away those of others.
  if (rank < 0 || rank >= static_cast<int>(checkpoint.nodes.size()) || checkpoint.nodes[rank] != node) return;
  if (checkpoint.exited.contains(rank)) return;
  const std::string why = absl::StrCat("rank ", rank, " on ", node.value(), ": ", Cut(problem));
  // A restore that reads what is damaged will say so itself.
  if (checkpoint.copies == NodeCopies::kUsed && IsRestoringFrom(state_.jobs.at(checkpoint.job), id)) return;
  if (recovery_.GoesBackToNodes(checkpoint, why)) return;
  recorder_.Record(checkpoint.job, CheckpointChanged{id, CheckpointState::kDamaged, why});
  const JobRecord& job = state_.jobs.at(checkpoint.job);
  if (job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kBeginning)
    recovery_.FallBack(job, why);
}

}  // namespace siding
