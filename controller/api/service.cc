#include "controller/api/service.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/fault.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"
#include "controller/api/action_view.h"
#include "controller/api/trend_views.h"
#include "controller/api/views.h"
#include "controller/engine/decide/plan_record.h"
#include "controller/engine/state/trend_count.h"
#include "controller/wire/wire.h"
#include "policy/policy_text.h"

namespace siding {
namespace {

constexpr size_t kLongestKey = 64;

// So many jobs are shown under the engine's lock at once, and then others have their turn.
constexpr int kJobsAtOnce = 500;
constexpr Duration kBreath = std::chrono::milliseconds(1);

const JobRecord& RecordIn(const JobRecord& record) { return record; }
const JobRecord& RecordIn(const JobRecord* record) { return *record; }

// Returns where to continue; none: all have been shown.
template <class Jobs, class Show>
std::optional<JobId> ShowSome(const Jobs& jobs, JobId from, const Show& show) {
  auto job = jobs.lower_bound(from);
  for (int shown = 0; shown < kJobsAtOnce && job != jobs.end(); ++job) shown += show(RecordIn(job->second));
  return job == jobs.end() ? std::nullopt : std::optional(job->first);
}

// Of such a job it is worth asking when it is back.
bool Waits(const JobRecord& job) {
  return !IsTerminal(job.state) &&
         (!HoldsNodes(job.state) || job.state == JobState::kSuspended || job.displaced_by != JobId());
}

// Which jobs a caller wants to see.
class JobFilter {
 public:
  static absl::StatusOr<JobFilter> Of(const v1::ListJobsRequest& request) {
    JobFilter filter;
    filter.user_ = request.user();
    for (const std::string& name : request.states()) {
      const std::optional<JobState> state = ParseJobState(name);
      if (!state)
        return absl::InvalidArgumentError(absl::StrCat("state '", name, "': expected ", StateNames()));
      filter.states_.insert(*state);
    }
    return filter;
  }
  bool Takes(const JobRecord& job) const {
    return (user_.empty() || job.spec.user == user_) && (states_.empty() || states_.contains(job.state));
  }
  bool WantsEnded() const { return std::any_of(states_.begin(), states_.end(), IsTerminal); }

 private:
  static std::string StateNames() {
    std::vector<std::string> names;
    for (int i = 0; i < kJobStateCount; ++i) names.push_back(ToString(static_cast<JobState>(i)));
    return absl::StrJoin(names, ", ");
  }

  std::string user_;
  std::set<JobState> states_;
};

}  // namespace

ApiService::ApiService(Engine& engine, PolicyWatcher& policy, const ServiceLimits& limits,
                       JournalBackup* backup)
    : engine_(engine),
      policy_(policy),
      backup_(backup),
      calls_(limits),
      waiting_calls_(limits),
      planning_calls_(limits) {}

Caller ApiService::CallerOf(const ApiCall& call) const {
  const UserIdentity& identity = call.identity;
  return {identity.uid, identity.user, identity.uid == 0 || engine_.IsOperator(identity.user)};
}

void ApiService::NoteRefusal(const Caller& caller, const char* method, const std::string& why) const {
  if (caller.uid == kNobody) return;
  refusals_.Warn(absl::StrCat("refusals of user ", caller.user),
                 absl::StrCat(method, " by user ", caller.user, " is refused: ", why));
}

absl::Status ApiService::Reply(const Caller& caller, const char* method, const absl::Status& status) const {
  if (absl::IsPermissionDenied(status) || absl::IsResourceExhausted(status) || absl::IsNotFound(status))
    NoteRefusal(caller, method, std::string(status.message()));
  return status;
}

MaySeeJob ApiService::SeenBy(const Caller& caller) const {
  return [this, caller](const JobRecord& job) { return engine_.MaySee(caller, job); };
}

absl::StatusOr<JobSpec> ApiService::SpecOf(const v1::SubmitRequest& request,
                                           const UserIdentity& identity) const {
  SIDING_ASSIGN_OR_RETURN(JobSpec spec, FromProto(request.spec()));
  spec.uid = identity.uid;
  spec.gid = identity.gid;
  spec.user = identity.user;
  return spec;
}

absl::Status ApiService::Submit(const ApiCall& call, const v1::SubmitRequest* request,
                                v1::SubmitResponse* response) {
  const Caller caller = CallerOf(call);
  auto spec = SpecOf(*request, call.identity);
  if (!spec.ok()) return spec.status();
  if (request->request_key().size() > kLongestKey) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_key: ", request->request_key().size(), " bytes; expected up to ", kLongestKey));
  }
  const bool plans = spec->kind == JobKind::kOnDemand && !caller.is_operator;
  const CallSlots::Slot slot(planning_calls_, plans ? caller.uid : 0);
  if (!slot.status.ok()) return slot.status;
  FaultHere<"api.submit: a job is about to be submitted">();
  const auto submitted = engine_.Submit(caller, *std::move(spec), request->request_key());
  if (!submitted.ok()) return Reply(caller, __func__, submitted.status());
  FaultHere<"api.submitted: a job is recorded, its user has not been told">();
  response->set_id(submitted->id.value());
  if (submitted->plan) {
    *response->mutable_plan() = Show(caller, *submitted->plan, kKeptOfRecord);
  }
  return absl::OkStatus();
}

absl::Status ApiService::PlanRequest(const ApiCall& call, const v1::SubmitRequest* request,
                                     v1::Plan* response) {
  const Caller caller = CallerOf(call);
  // It names jobs, and the time that plans take is not for those whom nobody knows.
  if (caller.uid == kNobody) return absl::PermissionDeniedError("plans are made for users");
  auto spec = SpecOf(*request, call.identity);
  if (!spec.ok()) return spec.status();
  const CallSlots::Slot slot(planning_calls_, caller.is_operator ? 0 : caller.uid);
  if (!slot.status.ok()) return slot.status;
  spec = engine_.WithDeadline(*std::move(spec));
  if (!spec.ok()) return Reply(caller, __func__, spec.status());
  const int32_t most = request->most_kept();
  const bool beyond_record = most < 0 || static_cast<size_t>(most) > kMostKeptRecorded;
  auto plan = engine_.DryRun(caller, *spec, request->compare(), beyond_record);
  if (!plan.ok()) return Reply(caller, __func__, plan.status());
  *response = Show(caller, *std::move(plan), most);
  response->set_start_by_us(ToMicros(spec->start_by));
  return absl::OkStatus();
}

absl::Status ApiService::PlanAction(const ApiCall& call, const v1::ActionRequest* request,
                                    v1::ActionPlan* response) {
  const Caller caller = CallerOf(call);
  const auto action = ActionOf(*request);
  if (!action.ok()) return action.status();
  const CallSlots::Slot slot(planning_calls_, caller.is_operator ? 0 : caller.uid);
  if (!slot.status.ok()) return slot.status;
  const auto plan = engine_.PlanAction(caller, *action);
  if (!plan.ok()) return Reply(caller, __func__, plan.status());
  response->set_verb(request->verb());
  engine_.Read([&](const ClusterState& state) { ShowAction(*plan, state, SeenBy(caller), *response); });
  return absl::OkStatus();
}

absl::Status ApiService::Explain(const ApiCall& call, const v1::ExplainRequest* request,
                                 v1::ExplainResponse* response) {
  const Caller caller = CallerOf(call);
  absl::Status result;
  std::vector<Plan> plans;
  bool waits = false;
  engine_.Read([&](const ClusterState& state) {
    auto it = state.jobs.find(JobId(request->id()));
    const bool there = it != state.jobs.end();
    if (!there || !engine_.MaySee(caller, it->second)) {
      if (there)
        NoteRefusal(caller, "Explain",
                    absl::StrCat("job ", request->id(), " belongs to ", it->second.spec.user));
      result = absl::NotFoundError(WhyUnknown(state, JobId(request->id())));
      return;
    }
    if (!engine_.MayAct(caller, it->second)) {
      result = absl::PermissionDeniedError(
          absl::StrCat("job ", request->id(), " belongs to ", it->second.spec.user));
      return;
    }
    *response->mutable_job() = ShowJob(state, it->second);
    response->mutable_job()->set_waits_for(engine_.WhyWaits(it->second));
    plans = it->second.plans;
    waits = Waits(it->second);
  });
  if (!result.ok()) return Reply(caller, __func__, result);
  if (waits) AddBacks(caller, {response->mutable_job()});
  if (request->compare()) {
    const CallSlots::Slot slot(planning_calls_, caller.is_operator ? 0 : caller.uid);
    // Of the newest alone: each takes many plans.
    if (slot.status.ok() && !plans.empty())
      plans.back().without = engine_.PlansWithout(JobId(request->id()), plans.size() - 1);
  }
  for (Plan& plan : plans) *response->add_plans() = Show(caller, std::move(plan), request->most_kept());
  return absl::OkStatus();
}

absl::Status ApiService::ListJobs(const ApiCall& call, const v1::ListJobsRequest* request,
                                  v1::ListJobsResponse* response) {
  const Caller caller = CallerOf(call);
  const absl::StatusOr<JobFilter> filter = JobFilter::Of(*request);
  if (!filter.ok()) return filter.status();
  const bool ended = request->all() || filter->WantsEnded();
  const std::set<int64_t> ids(request->ids().begin(), request->ids().end());
  std::string missing;
  std::set<JobId> waiting;
  std::optional<JobId> from;  // of those that are not named, the next to be shown
  if (ids.empty()) from = JobId();
  const auto look = [&](const ClusterState& state) {
    const auto show = [&](const JobRecord& job) {
      const bool may = engine_.MaySee(caller, job);
      if (may && filter->Takes(job)) {
        const bool whole = engine_.MayAct(caller, job);
        v1::Job& view = *response->add_jobs();
        view = whole ? ShowJob(state, job) : ShowOthersJob(state, job);
        if (request->brief()) {
          LeaveOutWhatItRuns(*view.mutable_spec());
          view.clear_memory();
        }
        if (whole) view.set_waits_for(engine_.WhyWaits(job));
        if (whole && Waits(job)) waiting.insert(job.id);
      }
      return may;
    };
    if (from) {
      from = ended ? ShowSome(state.jobs, *from, show) : ShowSome(state.unfinished, *from, show);
      return;
    }
    for (int64_t id : ids) {
      auto it = state.jobs.find(JobId(id));
      if (!missing.empty()) break;
      if (it == state.jobs.end() || !show(it->second)) missing = WhyUnknown(state, JobId(id));
    }
  };
  engine_.Read(look);
  while (from && !call.cancelled()) {
    std::this_thread::sleep_for(kBreath);
    engine_.Read(look);
  }
  if (!missing.empty()) {
    NoteRefusal(caller, __func__, missing);
    return absl::NotFoundError(missing);
  }
  std::vector<v1::Job*> views;
  for (v1::Job& view : *response->mutable_jobs()) {
    if (waiting.contains(JobId(view.id()))) views.push_back(&view);
  }
  AddBacks(caller, views);
  return absl::OkStatus();
}

void ApiService::AddBacks(const Caller& caller, const std::vector<v1::Job*>& views) const {
  if (views.empty()) return;
  const auto backs = engine_.Returns();
  std::vector<std::pair<v1::Job*, const Back*>> found;
  for (v1::Job* view : views) {
    if (const auto back = backs->find(JobId(view->id())); back != backs->end())
      found.emplace_back(view, &back->second);
  }
  std::set<JobId> named;
  engine_.Read([&](const ClusterState& state) {
    for (const auto& [view, back] : found) {
      const auto job = state.jobs.find(back->because.job);
      if (job == state.jobs.end()) continue;
      // Who is on which node all may see.
      if (HoldsNodes(job->second.state) || engine_.MaySee(caller, job->second)) named.insert(job->first);
    }
  });
  for (const auto& [view, back] : found)
    *view->mutable_back() = ShowBack(*back, named.contains(back->because.job));
}

v1::Plan ApiService::Show(const Caller& caller, Plan plan, int32_t most_kept) const {
  const bool sees_all = engine_.MaySeeAll(caller);
  PlanContext context;
  engine_.Read([&](const ClusterState& state) { context = ContextOf(state, plan, SeenBy(caller)); });
  return ShowPlan(std::move(plan), context, sees_all, most_kept);
}

absl::Status ApiService::ListNodes(const ApiCall&, const v1::ListNodesRequest*,
                                   v1::ListNodesResponse* response) {
  // All who can connect may see the nodes.
  engine_.Read([&](const ClusterState& state) { *response = ShowNodes(state); });
  return absl::OkStatus();
}

absl::Status ApiService::Events(const ApiCall& call, const v1::EventsRequest* request,
                                const Sink<v1::Event>& sink) {
  const Caller caller = CallerOf(call);
  const WaitingCalls::Slot slot(waiting_calls_, caller.uid);
  if (!slot.status.ok()) return slot.status;
  if (const JobId job(request->job()); job != JobId() && !request->follow()) {
    std::string missing;
    engine_.Read([&](const ClusterState& state) {
      const auto it = state.jobs.find(job);
      if (it == state.jobs.end() || !engine_.MaySee(caller, it->second)) missing = WhyUnknown(state, job);
    });
    if (!missing.empty()) return absl::NotFoundError(missing);
  }
  int64_t seq = request->after_seq();
  while (!stopping_ && !call.cancelled()) {
    const EventPart part =
        EventsAfter(call, *request, seq, kEventBatch, request->follow() ? kEventWait : Duration(0));
    const bool empty = part.next == seq;
    if (empty && !request->follow()) break;
    seq = part.next;
    for (const v1::Event& event : part.events) {
      if (!sink(event)) return absl::OkStatus();  // the reader has gone
    }
    if (request->marks() && !empty && (part.events.empty() || part.events.back().seq() < seq)) {
      v1::Event mark;
      mark.set_seq(seq);
      if (!sink(mark)) return absl::OkStatus();
    }
    if (!empty && !part.more && request->follow()) std::this_thread::sleep_for(kEventPause);
  }
  return absl::OkStatus();
}

int64_t ApiService::NewestEvent() const {
  int64_t newest = 0;
  engine_.Read([&](const ClusterState& state) { newest = state.last_seq; });
  return newest;
}

ApiService::EventPart ApiService::EventsAfter(const ApiCall& call, const v1::EventsRequest& request,
                                              int64_t seq, size_t limit, Duration wait) const {
  const std::vector<Event> events = engine_.EventsAfter(seq, limit, wait);
  EventPart part{.next = events.empty() ? seq : events.back().seq, .more = events.size() == limit};
  for (const Event* event : VisibleOf(events, CallerOf(call), JobId(request.job()))) {
    if (ToMicros(event->at) >= request.since_us()) part.events.push_back(ShowEvent(*event));
  }
  return part;
}

std::vector<const Event*> ApiService::VisibleOf(const std::vector<Event>& events, const Caller& caller,
                                                JobId only) const {
  std::vector<const Event*> visible;
  engine_.Read([&](const ClusterState& state) {
    for (const Event& event : events) {
      if (only != JobId() && event.job != only) continue;
      const auto job = state.jobs.find(event.job);
      if (event.job == JobId() || (job != state.jobs.end() && engine_.MayAct(caller, job->second)))
        visible.push_back(&event);
    }
  });
  return visible;
}

absl::Status ApiService::ListCheckpoints(const ApiCall& call, const v1::ListCheckpointsRequest* request,
                                         v1::ListCheckpointsResponse* response) {
  const Caller caller = CallerOf(call);
  engine_.Read([&](const ClusterState& state) {
    for (const auto& [id, checkpoint] : state.checkpoints) {
      if (request->job() != 0 && checkpoint.job.value() != request->job()) continue;
      if (checkpoint.state == CheckpointState::kGone || checkpoint.state == CheckpointState::kFailed)
        continue;
      auto job = state.jobs.find(checkpoint.job);
      if (job != state.jobs.end() && engine_.MayAct(caller, job->second)) {
        *response->add_checkpoints() = ShowCheckpoint(state, checkpoint);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status ApiService::VerifyCheckpoint(const ApiCall& call, const v1::CheckpointRef* request,
                                          v1::VerifyResponse* response) {
  const Caller caller = CallerOf(call);
  const WaitingCalls::Slot slot(waiting_calls_, caller.uid);
  if (!slot.status.ok()) return slot.status;
  // Shared with the callback, which may come after this call has given up.
  struct Answer {
    Mutex mutex;
    CondVar ready;
    std::optional<std::map<int, v1::OpResult>> by_rank ABSL_GUARDED_BY(mutex);
  };
  auto answer = std::make_shared<Answer>();
  const absl::Status asked = engine_.VerifyCheckpoint(caller, CheckpointId(request->id()),
                                                      [answer](std::map<int, v1::OpResult> by_rank) {
                                                        MutexLock lock(answer->mutex);
                                                        answer->by_rank = std::move(by_rank);
                                                        answer->ready.NotifyAll();
                                                      });
  if (!asked.ok()) return Reply(caller, __func__, asked);
  MutexLock lock(answer->mutex);
  while (!answer->ready.WaitFor(
      answer->mutex, kEventWait,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(answer->mutex) { return answer->by_rank.has_value(); })) {
    if (stopping_ || call.cancelled()) return absl::CancelledError("the caller has gone");
  }
  for (const auto& [rank, result] : *answer->by_rank) {
    // Says nothing of the image. Not kUnavailable: to a client that means that there is no controller.
    if (result.code() == static_cast<int>(absl::StatusCode::kUnavailable)) {
      return absl::AbortedError(absl::StrCat("checkpoint ", request->id(), " was not verified: rank ", rank,
                                             ": ", result.message()));
    }
  }
  response->set_good(true);
  for (const auto& [rank, result] : *answer->by_rank) {
    if (result.code() != 0) {
      response->set_good(false);
      absl::StrAppend(response->mutable_problem(), response->problem().empty() ? "" : "; ", "rank ", rank,
                      ": ", result.message());
    }
    v1::VerifiedRank& verified = *response->add_ranks();
    verified.set_rank(rank);
    verified.set_files(result.files_size());
    for (const v1::ImageFile& file : result.files()) verified.set_bytes(verified.bytes() + file.size());
  }
  return absl::OkStatus();
}

absl::Status ApiService::DeleteCheckpoint(const ApiCall& call, const v1::CheckpointRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.DeleteCheckpoint(caller, CheckpointId(request->id())));
}

absl::Status ApiService::Suspend(const ApiCall& call, const v1::JobRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Suspend(caller, JobId(request->id()), request->if_unchanged()));
}

absl::Status ApiService::Resume(const ApiCall& call, const v1::JobRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Resume(caller, JobId(request->id()), request->if_unchanged()));
}

absl::Status ApiService::Checkpoint(const ApiCall& call, const v1::CheckpointRequest* request,
                                    v1::CheckpointResponse* response) {
  const Caller caller = CallerOf(call);
  const auto id =
      engine_.Checkpoint(caller, JobId(request->id()), FromProto(request->tier()), request->if_unchanged());
  if (!id.ok()) return Reply(caller, __func__, id.status());
  response->set_checkpoint(id->value());
  return absl::OkStatus();
}

absl::Status ApiService::Vacate(const ApiCall& call, const v1::CheckpointRequest* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(
      caller, __func__,
      engine_.Vacate(caller, JobId(request->id()), FromProto(request->tier()), request->if_unchanged()));
}

absl::Status ApiService::Migrate(const ApiCall& call, const v1::MigrateRequest* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  std::vector<NodeId> nodes;
  for (const std::string& node : request->nodes()) nodes.emplace_back(node);
  return Reply(caller, __func__,
               engine_.Migrate(caller, JobId(request->id()), std::move(nodes), request->if_unchanged()));
}

absl::Status ApiService::Restart(const ApiCall& call, const v1::RestartRequest* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Restart(caller, JobId(request->id()), request->running()));
}

absl::Status ApiService::Hold(const ApiCall& call, const v1::JobRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Hold(caller, JobId(request->id()), request->if_unchanged()));
}

absl::Status ApiService::Release(const ApiCall& call, const v1::JobRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Release(caller, JobId(request->id()), request->if_unchanged()));
}

absl::Status ApiService::Update(const ApiCall& call, const v1::UpdateRequest* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  const auto change = FromProto(*request);
  if (!change.ok()) return change.status();
  return Reply(caller, __func__, engine_.Update(caller, JobId(request->id()), *change));
}

absl::Status ApiService::Kill(const ApiCall& call, const v1::JobRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Kill(caller, JobId(request->id()), request->if_unchanged()));
}

absl::Status ApiService::Cordon(const ApiCall& call, const v1::NodeRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__,
               engine_.Cordon(caller, NodeId(request->name()), true, request->if_unchanged()));
}

absl::Status ApiService::Uncordon(const ApiCall& call, const v1::NodeRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__,
               engine_.Cordon(caller, NodeId(request->name()), false, request->if_unchanged()));
}

absl::Status ApiService::Lose(const ApiCall& call, const v1::NodeRef* request, v1::Empty*) {
  const Caller caller = CallerOf(call);
  return Reply(caller, __func__, engine_.Lose(caller, NodeId(request->name()), request->if_unchanged()));
}

absl::Status ApiService::Site(const ApiCall& call, const v1::Empty*, v1::SiteInfo* response) {
  // All who can connect may know where to submit.
  response->set_cluster_manager(engine_.ClusterManager());
  response->set_now_us(ToMicros(engine_.Now()));
  response->set_newest_event(NewestEvent());
  const Caller caller = CallerOf(call);
  if (caller.uid != kNobody) response->set_user(caller.user);
  response->set_is_operator(caller.is_operator);
  return absl::OkStatus();
}

absl::Status ApiService::ListTrends(const ApiCall&, const v1::Empty*, v1::TrendsResponse* response) {
  // All who can connect may read what the metrics add up, too.
  const Time now = engine_.Now();
  Trends trends;
  engine_.Read([&](const ClusterState& state) { trends = TrendsOf(state, now); });
  *response = ShowTrends(trends);
  return absl::OkStatus();
}

absl::Status ApiService::ShowPolicy(const ApiCall&, const v1::Empty*, v1::PolicyInForce* response) {
  // All who can connect may know the rules.
  const PolicyWatcher::InForce current = policy_.Current();
  response->set_yaml(ToYaml(current.policy));
  response->set_file(policy_.file());
  response->set_loaded_us(ToMicros(current.loaded));
  response->set_problem(current.problem);
  response->set_defaults(ToYaml(Policy()));
  return absl::OkStatus();
}

absl::Status ApiService::ReloadPolicy(const ApiCall& call, const v1::Empty*, v1::PolicyReloaded* response) {
  const Caller caller = CallerOf(call);
  if (!caller.is_operator) {
    return Reply(caller, __func__, absl::PermissionDeniedError("only operators may reload the policy"));
  }
  spdlog::info("{} asks for the policy to be loaded again", caller.user);
  const auto reloaded = policy_.Reload(caller.user);
  if (!reloaded.ok()) return reloaded.status();
  response->set_file(policy_.file());
  response->mutable_changes()->Assign(reloaded->changes.begin(), reloaded->changes.end());
  response->mutable_warnings()->Assign(reloaded->warnings.begin(), reloaded->warnings.end());
  return absl::OkStatus();
}

absl::Status ApiService::Backup(const ApiCall& call, const v1::Empty*, const Sink<v1::BackupPart>& sink) {
  const Caller caller = CallerOf(call);
  if (!caller.is_operator || backup_ == nullptr) {
    return Reply(caller, __func__, absl::PermissionDeniedError("only operators may copy the journal"));
  }
  const WaitingCalls::Slot slot(waiting_calls_, caller.uid);
  if (!slot.status.ok()) return slot.status;
  spdlog::info("{} takes a copy of the journal", caller.user);
  JournalBackup::Reader reader;
  reader.wants = [&] { return !stopping_ && !call.cancelled(); };
  reader.take = [&](int64_t total, const std::string& bytes) {
    v1::BackupPart part;
    part.set_total(total);
    part.set_data(bytes);
    return !stopping_ && sink(part);
  };
  return backup_->Send(reader);
}

}  // namespace siding
