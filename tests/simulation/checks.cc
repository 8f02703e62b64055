#include "tests/simulation/checks.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace siding::simulation {

namespace {

bool IsOnDisk(CheckpointState state) { return state == CheckpointState::kGood; }

}  // namespace

ImageName ImageOf(const CheckpointRecord& checkpoint, int rank) {
  const std::string disk = checkpoint.tier == Tier::kLocal ? checkpoint.nodes[rank].value() : "";
  return {disk, checkpoint.id.value(), rank};
}

bool LiesOnALostDisk(const ClusterState& recorded, const CheckpointRecord& checkpoint) {
  if (checkpoint.tier != Tier::kLocal) return false;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (!checkpoint.exited.contains(rank) && recorded.IsLost(checkpoint.nodes[rank])) return true;
  }
  return false;
}

const JobRecord* Checks::Find(JobId id) const {
  const auto found = recorded_.jobs.find(id);
  return found == recorded_.jobs.end() ? nullptr : &found->second;
}

// ---- At every moment. ----

void Checks::OnEvent(const Event& event) {
  static const std::set<std::string> kinds = AllEventKinds();
  if (!kinds.contains(KindOf(event)))
    lab_.trace.Violate(absl::StrCat("events of the kind ", KindOf(event), " cannot be asked for"));
  if (const auto* changed = std::get_if<CheckpointChanged>(&event.body)) {
    if (changed->state == CheckpointState::kGone) gone_.insert(changed->checkpoint);
    CheckRestorable(event, *changed);
    CheckDamaged(event, *changed);
    CheckRefused(event, *changed);
  }
  if (const auto* copies = std::get_if<CopiesChanged>(&event.body)) CheckCopied(*copies);
  if (const auto* exited = std::get_if<RankExited>(&event.body)) {
    const JobRecord& job = *Find(event.job);
    const auto done = lab_.finished.find({event.job, exited->rank});
    if (exited->exit_code == 0 && (done == lab_.finished.end() || !done->second.contains(job.incarnation)))
      lab_.trace.Violate(absl::StrCat("rank ", exited->rank, " of job ", event.job.value(),
                                      " is recorded to have done its work, and has not"));
  }
  const auto* move = std::get_if<JobMoved>(&event.body);
  if (move == nullptr) return;
  CheckStartsOver(event);
  CheckHeld(event, *move);
  if (move->event == JobEvent::kCommit) committed_.insert(move->checkpoint);
  if (move->event == JobEvent::kContinued) CheckMoment(event);
  if (move->event != JobEvent::kPlace) return;
  starts_.emplace(event.job, Find(event.job)->incarnation);
  CheckStart(event, *move);
  CheckLost(*Find(event.job));
}

// There was one at which all ranks stood still, so their images fit together.
void Checks::CheckMoment(const Event& event) {
  const JobRecord& job = *Find(event.job);
  if (job.checkpoints.empty() || job.current.event != JobEvent::kOrderDump) return;
  const CheckpointRecord& checkpoint = recorded_.checkpoints.at(job.checkpoints.back());
  Time from{}, until = Time::max();
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    const auto image = lab_.store.images.find(ImageOf(checkpoint, rank));
    if (checkpoint.exited.contains(rank) || image == lab_.store.images.end()) continue;
    from = std::max(from, image->second.stopped);
    until = std::min(until, image->second.let_go);
  }
  if (from > until)
    lab_.trace.Violate(absl::StrCat("the images of checkpoint ", checkpoint.id.value(), " of job ",
                                    event.job.value(), " are of different moments"));
}

void Checks::PutBack(const std::function<void()>& put_back) {
  for (const auto& [id, checkpoint] : recorded_.checkpoints) {
    lost_checkpoints_.insert(id);
    if (!IsOnDisk(checkpoint.state)) excused_.insert(id);
  }
  excused_.merge(gone_);
  gone_.clear();
  excused_.merge(copies_gone_);  // the copy of the journal may say that they are all that there is
  old_starts_ = starts_;
  put_back();
  for (const auto& [id, checkpoint] : recorded_.checkpoints) {
    if (checkpoint.state != CheckpointState::kBeingMade) lost_checkpoints_.erase(id);
  }
  for (const auto& [id, incarnation] : starts_) {
    const JobRecord* job = Find(id);
    if (job == nullptr || incarnation > job->incarnation) lost_starts_.emplace(id, incarnation);
  }
}

// All of its ranks have been started, and it is told of their networks and of no earlier ones.
void Checks::OnJoin(const TaskId& task, const v1::JoinNetwork& network) {
  for (const v1::GangEndpoint& rank : network.ranks()) {
    const auto made = lab_.networks.find({rank.address(), rank.vni()});
    if (made == lab_.networks.end() || made->second != TaskId{task.job, task.incarnation, rank.rank()})
      lab_.trace.Violate(absl::StrCat("task ", ToString(task), " is joined to a network that is not rank ",
                                      rank.rank(), "'s"));
  }
  const JobRecord* job = Find(task.job);
  for (int rank = 0; job != nullptr && rank < job->spec.nodes; ++rank) {
    if (job->exited.contains(rank)) continue;
    const TaskId peer{task.job, task.incarnation, rank};
    if (std::none_of(lab_.networks.begin(), lab_.networks.end(),
                     [&](const auto& made) { return made.second == peer; }))
      lab_.trace.Violate(
          absl::StrCat("task ", ToString(task), " is joined to others before rank ", rank, " is there"));
  }
}

void Checks::OnMemoryLost(const NodeId& node) {
  for (const auto& [image, content] : lab_.store.images) {
    if (image.disk == node.value()) memory_lost_.insert(image);
  }
}

void Checks::OnBurnt(const NodeId& node) {
  burnt_.insert(node);
  for (const auto& [image, content] : lab_.store.images) {
    if (image.disk == node.value()) burnt_images_.insert(image);
  }
}

// What has been started once under a number may have run, and ended.
void Checks::OnStartOrder(const TaskId& task) {
  if (old_starts_.contains({task.job, task.incarnation}))
    lab_.trace.Violate(
        absl::StrCat("task ", ToString(task), " is started, as it was before the copy was put back"));
}

// The journal in use does not know of it.
bool Checks::IsLost(const TaskId& task) const {
  const JobRecord* job = Find(task.job);
  return lost_starts_.contains({task.job, task.incarnation}) &&
         (job == nullptr || job->incarnation != task.incarnation);
}

// A job is not started anew beside a task of it that the controller can hear of.
void Checks::CheckLost(const JobRecord& job) {
  for (const Machine* machine : machines_) {
    if (!connected_(machine->node())) continue;
    for (const auto& [id, process] : machine->processes()) {
      if (id.job == job.id && IsLost(id))
        lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " is started again, and task ", ToString(id),
                                        " lives on ", machine->node().value()));
    }
  }
}

// One that is deleted because there are newer ones must not have been the last from which the job can go on.
void Checks::CheckRestorable(const Event& event, const CheckpointChanged& changed) {
  const JobRecord& job = *Find(event.job);
  const CheckpointRecord& checkpoint = recorded_.checkpoints.at(changed.checkpoint);
  bool lost = LiesOnALostDisk(recorded_, checkpoint) || excused_.contains(checkpoint.id);
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank)
    // Nor is there a copy that nobody knows of.
    lost |= (WasLostWithMemory(ImageOf(checkpoint, rank)) || HasBurnt(ImageOf(checkpoint, rank))) &&
            !lab_.store.images.contains({"", checkpoint.id.value(), rank});
  if (changed.state == CheckpointState::kDeleted && !IsTerminal(job.state) && changed.by.empty() && !lost &&
      job.checkpoints.empty())
    lab_.trace.Violate(absl::StrCat("the last checkpoint of job ", job.id.value(), " is deleted"));
}

// What is in shared storage by what is recorded is there.
void Checks::CheckCopied(const CopiesChanged& changed) {
  const auto found = recorded_.checkpoints.find(changed.checkpoint);
  if (found == recorded_.checkpoints.end() || excused_.contains(changed.checkpoint)) return;
  const CheckpointRecord& checkpoint = found->second;
  if (!IsOnDisk(checkpoint.state) || checkpoint.tier != Tier::kShared) return;
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    if (!checkpoint.exited.contains(rank) && !lab_.store.images.contains(ImageOf(checkpoint, rank)))
      lab_.trace.Violate(absl::StrCat("checkpoint ", changed.checkpoint.value(),
                                      " counts in shared storage, and ", ToString(ImageOf(checkpoint, rank)),
                                      " does not exist"));
  }
}

// An image is given up only if it is not what was written. One that is in none of the stores was never whole.
void Checks::CheckDamaged(const Event& event, const CheckpointChanged& changed) {
  if (changed.state != CheckpointState::kDamaged) return;
  const CheckpointRecord& checkpoint = recorded_.checkpoints.at(changed.checkpoint);
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    const auto image = lab_.store.images.find(ImageOf(checkpoint, rank));
    if (checkpoint.exited.contains(rank)) continue;
    if (image == lab_.store.images.end() || image->second.damaged) return;
  }
  lab_.trace.Violate(absl::StrCat("checkpoint ", changed.checkpoint.value(), " of job ", event.job.value(),
                                  " is called damaged, and is not: ", changed.note));
}

// Nor because of nodes and what is around it, however often it failed.
void Checks::CheckRefused(const Event& event, const CheckpointChanged& changed) {
  if (changed.state != CheckpointState::kRefused) return;
  const CheckpointRecord& checkpoint = recorded_.checkpoints.at(changed.checkpoint);
  for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
    const auto image = lab_.store.images.find(ImageOf(checkpoint, rank));
    if (image != lab_.store.images.end() && image->second.refused) return;
  }
  lab_.trace.Violate(absl::StrCat("checkpoint ", changed.checkpoint.value(), " of job ", event.job.value(),
                                  " is given up, and criu would take it: ", changed.note));
}

// A job that has run starts from the beginning only if it may, or if somebody said so.
void Checks::CheckStartsOver(const Event& event) {
  const JobRecord& job = *Find(event.job);
  const JobEvent what = std::get<JobMoved>(event.body).event;
  // By an order that was carried out although it had been withdrawn, as nobody had heard of that.
  const bool after_all =
      what == JobEvent::kRestartNeeded && job.current.event == JobEvent::kOrderKill && !job.current.for_good;
  const bool killed = what == JobEvent::kRequeued || after_all;
  if (job.begun != event.at || restarted_by_user_.contains(job.id)) return;
  if (!killed && what != JobEvent::kRestartNeeded) return;
  const bool unasked = job.spec.methods.Has(Method::kKill) || job.spec.kind == JobKind::kOnDemand;
  const bool parks = job.spec.on_node_failure == OnNodeFailure::kPark && !killed;
  if (parks || (job.spec.on_node_failure != OnNodeFailure::kRequeue && !unasked))
    lab_.trace.Violate(absl::StrCat(
        "job ", job.id.value(), " starts from the beginning, and nobody said so (", job.restart_reason, ")"));
}

// A job that is held gets no nodes. One that was found with some had them before.
void Checks::CheckHeld(const Event& event, const JobMoved& move) {
  const bool goes_on =
      (move.event == JobEvent::kPlace && !move.found) || move.event == JobEvent::kOrderResume;
  if (goes_on && Find(event.job)->held)
    lab_.trace.Violate(
        absl::StrCat("job ", event.job.value(), " is held, and gets nodes (", ToString(move.event), ")"));
}

// An operator was wrong, and the job was started again beside it: it is to be ended when its node is back.
bool Checks::IsGivenUp(const NodeId& node, const TaskId& task) const {
  const auto last = given_up_.find({node, task.job});
  return last != given_up_.end() && task.incarnation <= last->second;
}

void Checks::CheckStart(const Event& event, const JobMoved& move) {
  const JobRecord& job = *Find(event.job);
  for (const auto& [node, record] : recorded_.nodes) {
    given_up_.erase({node, job.id});  // one that is back has ended what it had by now
    if (record.lost_since) given_up_[{node, job.id}] = job.incarnation - 1;
  }
  for (int rank = 0; rank < static_cast<int>(move.nodes.size()); ++rank) {
    // One that has ended needs no node, and keeps the name of the one that it had.
    if (!job.exited.contains(rank) && is_silent(move.nodes[rank]))
      lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " is placed on ", move.nodes[rank].value(),
                                      ", of which nothing is heard"));
  }
  if (move.nodes.size() != static_cast<size_t>(job.spec.nodes))
    lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " has got ", move.nodes.size(), " nodes"));
  if (move.checkpoint == CheckpointId()) return;
  const bool may_be_gone = excused_.contains(move.checkpoint);
  if (!IsOnDisk(recorded_.checkpoints.at(move.checkpoint).state))
    lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " is to go on from ", move.checkpoint.value(),
                                    ", which is not good"));
  for (int rank = 0; rank < job.spec.nodes; ++rank) {
    if (job.exited.contains(rank)) continue;
    const ImageName image = ImageOf(recorded_.checkpoints.at(move.checkpoint), rank);
    if (!lab_.store.images.contains(image) && !HasBurnt(image) && !WasLostWithMemory(image) && !may_be_gone)
      lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " is to go on from image ", ToString(image),
                                      ", which does not exist"));
  }
}

void Checks::OnRunning() {
  std::map<JobId, TaskId> seen;
  for (const Machine* machine : machines_) CheckProcesses(*machine, seen);
}

void Checks::CheckProcesses(const Machine& machine, std::map<JobId, TaskId>& seen) {
  Resources used{0};
  for (const auto& [id, process] : machine.processes()) {
    const JobRecord* job = Find(id.job);
    // Of a job that the journal does not know any more nobody counts what it uses.
    if (job == nullptr && IsLost(id)) continue;
    used.memory += process.uses.memory;
    if (!process.parked) used.slots += process.uses.slots;
    if (IsLost(id)) continue;
    if (job == nullptr || id.incarnation > job->incarnation) {
      lab_.trace.Violate(absl::StrCat("task ", ToString(id), " runs, and is not recorded"));
      continue;
    }
    const auto rank = static_cast<size_t>(id.rank);
    if (id.incarnation == job->incarnation && HoldsNodes(job->state) &&
        (rank >= job->nodes.size() || job->nodes[rank] != machine.node()))
      lab_.trace.Violate(
          absl::StrCat("task ", ToString(id), " runs on ", machine.node().value(), ", which is not its own"));
    if (IsGivenUp(machine.node(), id)) continue;
    const auto [other, first] = seen.emplace(id.job, id);
    if (!first && (other->second.incarnation != id.incarnation || other->second.rank == id.rank))
      lab_.trace.Violate(
          absl::StrCat("tasks ", ToString(other->second), " and ", ToString(id), " live at the same time"));
  }
  if (!machine.capacity().Covers(used))
    lab_.trace.Violate(absl::StrCat("node ", machine.node().value(), " has ", machine.capacity().slots,
                                    " slots, and ", used.slots, " are in use"));
}

void Checks::OnImage(const ImageName& name) {
  if (!committed_.contains(CheckpointId(name.checkpoint)))
    lab_.trace.Violate(absl::StrCat("image ", ToString(name), " is in place before its commit is recorded"));
}

void Checks::OnDelete(const ImageName& name) {
  const auto found = recorded_.checkpoints.find(CheckpointId(name.checkpoint));
  if (excused_.contains(CheckpointId(name.checkpoint))) return;  // by an order of before
  if (gone_.contains(CheckpointId(name.checkpoint))) return;     // and may be forgotten
  // What else there is of it stays.
  const bool is_copy = found != recorded_.checkpoints.end() && !name.disk.empty() &&
                       found->second.copies == NodeCopies::kUnwanted &&
                       lab_.store.images.contains({"", name.checkpoint, name.rank});
  if (is_copy) {
    copies_gone_.insert(CheckpointId(name.checkpoint));
    return;
  }
  if (found == recorded_.checkpoints.end() || found->second.state == CheckpointState::kGood ||
      found->second.state == CheckpointState::kBeingMade)
    lab_.trace.Violate(absl::StrCat("image ", ToString(name), " is deleted, and its checkpoint is not"));
}

// ---- At the end. ----

std::string Checks::Unrest() const {
  for (const auto& [id, job] : recorded_.jobs) {
    if (!IsTerminal(job.state))
      return absl::StrCat("job ", id.value(), " is ", ToString(job.state), " since ",
                          FormatDuration(lab_.timeline.Now() - job.state_since), " (", job.reason, ")");
  }
  for (const Machine* machine : machines_) {
    for (const auto& [id, process] : machine->processes()) {
      // Left alone, and nobody tells it where its other ranks are.
      if (process.alone && Find(id.job) == nullptr && IsLost(id)) continue;
      return absl::StrCat("task ", ToString(id), " lives on ", machine->node().value(), ", ",
                          process.frozen ? "frozen" : "running", ", and its job is over");
    }
    for (const auto& [id, folder] : machine->folders) {
      // One of which nothing is recorded is left alone.
      if (Find(id.job) == nullptr && IsLost(id)) continue;
      return absl::StrCat("task ", ToString(id), " is not forgotten on ", machine->node().value());
    }
  }
  for (const auto& [name, writer] : lab_.store.drafts)
    return absl::StrCat("a draft is left: ", ToString(name));
  for (const auto& [id, checkpoint] : recorded_.checkpoints) {
    if (checkpoint.state == CheckpointState::kBeingMade)
      return absl::StrCat("checkpoint ", id.value(), " is still being made");
    const bool unwanted = IsUnwanted(checkpoint.state);
    if (unwanted && !IsOutOfReach(checkpoint))
      return absl::StrCat("checkpoint ", id.value(), " is ", ToString(checkpoint.state), " and not gone");
    const bool burnt = std::any_of(checkpoint.nodes.begin(), checkpoint.nodes.end(),
                                   [&](const NodeId& node) { return burnt_.contains(node); });
    if (checkpoint.copies == NodeCopies::kUnwanted && !burnt)
      return absl::StrCat("checkpoint ", id.value(), " is not gone from its nodes' disks");
  }
  return "";
}

// Of its images none is left, but a node that could say so is no more.
bool Checks::IsOutOfReach(const CheckpointRecord& checkpoint) const {
  const bool burnt = std::any_of(checkpoint.nodes.begin(), checkpoint.nodes.end(),
                                 [&](const NodeId& node) { return burnt_.contains(node); });
  return burnt && std::none_of(lab_.store.images.begin(), lab_.store.images.end(), [&](const auto& image) {
           return image.first.checkpoint == checkpoint.id.value();
         });
}

void Checks::AtTheEnd() {
  for (const auto& [id, job] : recorded_.jobs) CheckEndOfJob(job);
  CheckImages();
}

void Checks::CheckEndOfJob(const JobRecord& job) {
  const auto violate = [&](const std::string& what) {
    lab_.trace.Violate(absl::StrCat("job ", job.id.value(), " ", what, " (", job.reason, ")"));
  };
  if (promises_.contains(job.id) && (!job.first_started || *job.first_started > job.spec.start_by))
    violate(absl::StrCat("was to start by its deadline, and ",
                         job.first_started ? absl::StrCat("was late by ", FormatDuration(*job.first_started -
                                                                                         job.spec.start_by))
                                           : "never did"));
  if (job.first_started && (*job.first_started < job.submitted || *job.first_started > lab_.timeline.Now()))
    violate("is said to have started before it was submitted, or to start in the future");
  switch (job.state) {
    case JobState::kDone:
      for (int rank = 0; rank < job.spec.nodes; ++rank) {
        if (!lab_.finished.contains({job.id, rank}))
          violate(absl::StrCat("is done, and rank ", rank, " is not"));
      }
      return;
    case JobState::kFailed: {
      const bool refused = job.incarnation == 0 && job.spec.kind == JobKind::kOnDemand;
      const bool meant = ProgramOf(lab_.programs, job.spec.name).fails_at_rank >= 0 && job.exit_code == 1;
      const bool not_launched = job.reason.find("could not be started") != std::string::npos;
      const bool over = job.spec.walltime > Duration(0) && job.exit_code == 128 + 15 &&
                        absl::StrContains(job.reason, "walltime of ");
      if (!refused && !meant && !not_launched && !over) violate("has failed, and should not have");
      return;
    }
    case JobState::kCancelled:
      if (!killed_by_user_.contains(job.id)) violate("was cancelled, and nobody asked for it");
      return;
    default:
      return violate("has not ended");
  }
}

void Checks::CheckImages() {
  std::set<ImageName> wanted;
  for (const auto& [id, checkpoint] : recorded_.checkpoints) {
    if (!IsOnDisk(checkpoint.state)) continue;
    for (int rank = 0; rank < static_cast<int>(checkpoint.nodes.size()); ++rank) {
      // One that ended while it was being dumped may have one or not.
      const ImageName name = ImageOf(checkpoint, rank);
      wanted.insert(name);
      if (checkpoint.copies != NodeCopies::kNone)
        wanted.insert({checkpoint.nodes[rank].value(), id.value(), rank});
      // It may have been copied without that being known; it goes with the image.
      if (checkpoint.tier == Tier::kLocal) wanted.insert({"", id.value(), rank});
      if (!checkpoint.exited.contains(rank) && !lab_.store.images.contains(name) && !HasBurnt(name) &&
          !excused_.contains(id))
        lab_.trace.Violate(absl::StrCat("checkpoint ", id.value(), " is good, and image ", ToString(name),
                                        " does not exist"));
    }
  }
  for (const auto& [name, image] : lab_.store.images) {
    if (!wanted.contains(name) && !lost_checkpoints_.contains(CheckpointId(name.checkpoint)))
      lab_.trace.Violate(absl::StrCat("image ", ToString(name), " is left, and no good checkpoint has it"));
  }
}

}  // namespace siding::simulation
