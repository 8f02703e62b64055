// What agents say, taken down. Each speaks for its own node.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "common/utf8.h"
#include "controller/engine/impl.h"
#include "controller/wire/wire.h"

namespace siding {
namespace {

// More than any node has; what an agent says beyond this is not kept.
constexpr size_t kMostTasksOfANode = 100'000;
constexpr size_t kLongestText = 1000;

// What is kept of one node's tasks, in bytes. An agent tells of all of them in 3 MiB.
constexpr size_t kMostKept = 32 * kMiB;
// Of a cluster manager's task: agents fill in a few numbers and a name.
constexpr size_t kMostHostedSpec = 2048;
constexpr int kMostGpusOfATask = 1024;
// Tasks of a cluster manager's that are followed, of one node in a minute; others are with a later report.
constexpr int kMostClaims = 1200;
constexpr Duration kClaimsPeriod = std::chrono::minutes(1);

// A character that is cut through is none.
std::string Cut(const std::string& text) { return ToUtf8(text.substr(0, kLongestText)); }

}  // namespace

v1::TaskReport WithShortTexts(v1::TaskReport report) {
  report.set_error(Cut(report.error()));
  report.set_cannot_checkpoint(Cut(report.cannot_checkpoint()));
  report.set_cannot_drain(Cut(report.cannot_drain()));
  report.set_gpu_state_lost(Cut(report.gpu_state_lost()));
  report.set_checkpoint(Cut(report.checkpoint()));
  if (report.notes_size() > kMostNotes)
    report.mutable_notes()->DeleteSubrange(kMostNotes, report.notes_size() - kMostNotes);
  for (std::string& note : *report.mutable_notes()) note = Cut(note);
  if (report.gpus_size() > kMostGpusOfATask)
    report.mutable_gpus()->DeleteSubrange(kMostGpusOfATask, report.gpus_size() - kMostGpusOfATask);
  for (std::string& gpu : *report.mutable_gpus()) gpu = Cut(gpu);
  // Not one that an agent has made: nothing is followed by it.
  if (report.spec().ByteSizeLong() > kMostHostedSpec) report.clear_spec();
  report.DiscardUnknownFields();
  return report;
}

namespace {

// Shown to everybody who asks for nodes.
v1::Hello WithShortTexts(v1::Hello hello) {
  hello.clear_tasks();
  for (std::string* text :
       {hello.mutable_boot_id(), hello.mutable_version(), hello.mutable_criu(), hello.mutable_criu_problem(),
        hello.mutable_gpu_problem(), hello.mutable_fence_problem()})
    *text = Cut(*text);
  for (v1::Gpu& gpu : *hello.mutable_gpus()) {
    gpu.set_uuid(Cut(gpu.uuid()));
    gpu.set_name(Cut(gpu.name()));
  }
  hello.DiscardUnknownFields();
  return hello;
}

}  // namespace

// False: it is left out. What an agent says beyond this is made up.
bool Engine::Impl::HasRoomFor(const NodeId& node, const v1::TaskReport& report,
                              const v1::TaskReport* before) {
  const size_t count = state_.observed_tasks[node].size();
  size_t& kept = state_.observed_nodes[node].kept_bytes;
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

// Whether what a node says of a cluster manager's task may be written to the journal now.
bool Engine::Impl::MayClaim(const NodeId& node) {
  ObservedNode& observed = state_.observed_nodes[node];
  const Time now = clock_.Now();
  if (now < observed.claiming_since || now >= observed.claiming_since + kClaimsPeriod) {
    observed.claiming_since = now;
    observed.claims = 0;
  }
  if (observed.claims < kMostClaims) return true;
  limited_log_.Warn(absl::StrCat("node ", node.value()),
                    absl::StrCat("node ", node.value(), " reports more than ", kMostClaims,
                                 " starts of a cluster manager's tasks in a minute; others are put off"));
  return false;
}

absl::Status Engine::Impl::OnConnected(const NodeId& node, const v1::Hello& hello) {
  ObservedNode& observed = state_.observed_nodes[node];
  if (observed.connected) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", node.value(),
                     " has an agent connected already; is another one running with the same name?"));
  }
  if (IsLost(node)) Record(JobId(), NodeLost{node, false, {}});
  observed.connected = true;
  observed.silent = false;
  observed.last_heard = observed.last_beat = clock_.Now();
  observed.hello = WithShortTexts(hello);
  // The list is whole: a task that is not in it is not there.
  auto& tasks = state_.observed_tasks[node];
  for (const auto& [id, task] : tasks) to_judge_.insert(id.job);
  tasks.clear();
  observed.kept_bytes = 0;
  may_start_.erase(node);
  for (const v1::TaskReport& report : hello.tasks()) {
    const TaskId id = IdOf(report);
    if (id.job.value() <= 0 || id.rank < 0) continue;
    const auto twice = tasks.find(id);
    v1::TaskReport kept = WithShortTexts(report);
    if (!HasRoomFor(node, kept, twice == tasks.end() ? nullptr : &twice->second.report)) continue;
    const v1::TaskReport& said = (tasks[id] = {std::move(kept), 0, std::nullopt}).report;
    to_judge_.insert(id.job);
    Follow(node, said);
    CatchUp(said);
    HoldBackBeside(id, said.phase());
    TakeNotes(node, said);
  }
  std::erase_if(sent_, [&](const auto& sent) { return sent.first.second == node; });
  for (auto& [image, deletion] : deletions_) deletion.again_at = Time{};
  for (const auto& [id, rank] : state_.index.On(node)) to_judge_.insert(id);
  if (const auto jobs = state_.given_up.find(node); jobs != state_.given_up.end())
    to_judge_.insert(jobs->second.begin(), jobs->second.end());
  Touch(node);
  schedule_ = true;
  return absl::OkStatus();
}

void Engine::Impl::OnDisconnected(const NodeId& node) {
  ObservedNode& observed = state_.observed_nodes[node];
  observed.connected = false;
  if (!observed.silent) observed.gone_since = clock_.Now();
  observed.silent = false;
  may_start_.erase(node);
  Touch(node);
  // Its answers are lost with the connection. Deletions are asked for again.
  DropVerifications(node, "went away");
  schedule_ = true;
}

// Whoever waits for its answers is told that none come.
void Engine::Impl::DropVerifications(const NodeId& node, const std::string& why) {
  std::vector<int64_t> lost;
  for (const auto& [op, asked] : verifications_) {
    if (asked.node == node) lost.push_back(op);
  }
  for (int64_t op : lost) {
    v1::OpResult result;
    result.set_op(op);
    result.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
    result.set_message(absl::StrCat("node ", node.value(), " ", why, " and has not answered"));
    OnVerified(result);
  }
}

void Engine::Impl::TakeMessages() {
  for (const Inbox::Item& item : inbox_.Take()) OnMessage(*item.node, *item.message);
}

void Engine::Impl::OnMessage(const NodeId& node, const v1::FromAgent& message) {
  ObservedNode& observed = state_.observed_nodes[node];
  observed.last_heard = clock_.Now();
  if (message.has_heartbeat()) NoteBeat(node, observed);
  // Reports come again, with the next heartbeat; what somebody waits for does not.
  if (!health_.ok() && !verifications_.contains(message.result().op())) return;
  switch (message.what_case()) {
    case v1::FromAgent::kHeartbeat: {
      const bool first = observed.heartbeat.ram_available() == 0;
      observed.heartbeat = message.heartbeat();
      observed.heartbeat.clear_tasks();
      observed.heartbeat.clear_damaged();
      for (const v1::DamagedImage& image : message.heartbeat().damaged()) OnDamaged(node, image);
      for (const v1::TaskReport& report : message.heartbeat().tasks()) OnReport(node, report);
      schedule_ |= first;
      break;
    }
    case v1::FromAgent::kReport:
      OnReport(node, message.report());
      break;
    case v1::FromAgent::kProgress: {
      const v1::TaskRef& ref = message.progress().task();
      auto& tasks = state_.observed_tasks[node];
      auto it = tasks.find(TaskId{JobId(ref.job()), ref.incarnation(), ref.rank()});
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

// Kept with the node's name and asked for by that name only, so a job is moved by the reports of the nodes
// that it is placed on, and by no others.
void Engine::Impl::OnReport(const NodeId& node, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  auto& tasks = state_.observed_tasks[node];
  if (id.job.value() <= 0 || id.rank < 0) return;
  v1::TaskReport kept = WithShortTexts(report);
  const auto known = tasks.find(id);
  // A heartbeat that was newer has overtaken it. What is said of a task that is not there has no version.
  const bool overtaken =
      known != tasks.end() && report.version() != 0 && report.version() < known->second.report.version();
  if (!overtaken && !HasRoomFor(node, kept, known == tasks.end() ? nullptr : &known->second.report)) return;
  Touch(node);
  if (const auto starts = may_start_.find(node); starts != may_start_.end()) starts->second.erase(id);
  ObservedTask& task = tasks[id];
  if (overtaken) return;
  // Heartbeats repeat what is known; only news is worth a judgement.
  const bool news = task.report.phase() != report.phase() || task.report.failed_op() != report.failed_op() ||
                    task.report.committed_op() != report.committed_op() || task.report.op() != report.op();
  const bool cannot = kept.cannot_checkpoint() != task.report.cannot_checkpoint() ||
                      kept.gpu_state_lost() != task.report.gpu_state_lost();
  task.report = std::move(kept);
  Follow(node, task.report);
  CatchUp(task.report);
  TakeNotes(node, task.report);
  if (!news && !cannot) return;
  to_judge_.insert(id.job);
  // A stray that is gone makes room, and no event says so.
  if (IsGone(report.phase())) schedule_ = true;
  if (!IsLive(report.phase()) || report.phase() == v1::RUNNING) task.progress.reset();
}

bool Engine::Impl::IsPlacedOn(const NodeId& node, const TaskId& task) const {
  const auto found = state_.jobs.find(task.job);
  if (found == state_.jobs.end()) return false;
  const JobRecord& job = found->second;
  const int64_t rank = int64_t{task.rank} - job.first_rank;
  return task.incarnation == job.incarnation && rank >= 0 && rank < std::ssize(job.nodes) &&
         job.nodes[static_cast<size_t>(rank)] == node;
}

// Things that the job's owner should know. A task says all that it ever had to say in every report.
void Engine::Impl::TakeNotes(const NodeId& node, const v1::TaskReport& report) {
  const TaskId id = IdOf(report);
  if (!IsPlacedOn(node, id)) return;
  const std::map<int, int>& taken = state_.jobs.at(id.job).notes;
  const auto before = taken.find(id.rank);
  for (int i = before == taken.end() ? 0 : before->second; i < std::min(report.notes_size(), kMostNotes);
       ++i) {
    const std::string text = absl::StrCat("rank ", id.rank, " on ", node.value(), ": ", Cut(report.notes(i)));
    Record(id.job, Noted{text, id.rank});
  }
}

// Only from the node that was asked.
void Engine::Impl::OnResult(const NodeId& node, const v1::OpResult& result) {
  const auto verified = verifications_.find(result.op());
  if (verified != verifications_.end() && verified->second.node == node) return OnVerified(result);
  const auto deleted = deletion_by_op_.find(result.op());
  if (deleted != deletion_by_op_.end() && deleted->second.node == node) return OnDeleted(node, result);
  if (verified != verifications_.end() || deleted != deletion_by_op_.end())
    limited_log_.Warn(absl::StrCat("node ", node.value()),
                      absl::StrCat("node ", node.value(), " answers operation ", result.op(),
                                   ", which it was not asked for"));
}

void Engine::Impl::OnVerified(const v1::OpResult& result) {
  const auto it = verifications_.find(result.op());
  const auto [verification, asked, rank] = it->second;
  verifications_.erase(it);
  v1::OpResult& kept = verification->results[rank] = result;
  kept.set_message(Cut(result.message()));
  if (--verification->outstanding > 0) return;
  for (const VerifyCallback& done : verification->waiting) done(verification->results);
}

void Engine::Impl::OnDeleted(const NodeId& node, const v1::OpResult& result) {
  const auto it = deletion_by_op_.find(result.op());
  const auto [id, rank] = it->second.image;
  deletion_by_op_.erase(it);
  if (result.code() != 0) {
    spdlog::warn("checkpoint {} rank {} on {} could not be deleted: {}", id.value(), rank, node.value(),
                 Cut(result.message()));
    // What stood in its way may be over in a moment.
    if (const auto deletion = deletions_.find({id, rank}); deletion != deletions_.end())
      deletion->second.again_at = clock_.Now() + PauseAfter(++deletion->second.failures);
    return;
  }
  // An answer may come twice, and after the job has been forgotten.
  const auto found = state_.checkpoints.find(id);
  if (found == state_.checkpoints.end() || found->second.state == "gone") return;
  const CheckpointRecord& checkpoint = found->second;
  // Should the agent of a lost node come back after all, it may have put the image in its place meanwhile.
  if (IsBeingWritten(checkpoint, rank)) return;
  std::set<int>& ranks = deleted_ranks_[id];
  ranks.insert(rank);
  if (ranks.size() >= checkpoint.nodes.size()) {
    Record(checkpoint.job, CheckpointChanged{id, "gone", checkpoint.note});
    deleted_ranks_.erase(id);
    for (int r = 0; r < static_cast<int>(checkpoint.nodes.size()); ++r) deletions_.erase({id, r});
  }
}

// An image that its node has read back. It says so until the image is gone, so this may be the second time.
void Engine::Impl::OnDamaged(const NodeId& node, const v1::DamagedImage& image) {
  const auto found = state_.checkpoints.find(CheckpointId(image.checkpoint()));
  if (found == state_.checkpoints.end() || found->second.state != "good") return;
  const CheckpointRecord& checkpoint = found->second;
  const int rank = image.rank() - checkpoint.first_rank;
  // Of its own images only: a node is not to take away those of others.
  if (rank < 0 || rank >= static_cast<int>(checkpoint.nodes.size()) || checkpoint.nodes[rank] != node) return;
  if (checkpoint.exited.contains(rank) || image.tier() != ToProto(checkpoint.tier)) return;
  const std::string why = absl::StrCat("rank ", rank, " on ", node.value(), ": ", Cut(image.problem()));
  Record(checkpoint.job, CheckpointChanged{checkpoint.id, "damaged", why});
  JobRecord& job = state_.jobs[checkpoint.job];
  if (job.state == JobState::kParked && ResumptionOf(state_, job) == Resumption::kBeginning)
    FallBack(job, why);
}

}  // namespace siding
