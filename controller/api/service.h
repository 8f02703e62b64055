// The service of users, operators and administrators. Only translates: what they ask, and the engine's
// answer. It does not know how a call came: GrpcApi (grpc_api.h) is what gRPC sees of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/limited_log.h"
#include "controller/api/backup.h"
#include "controller/api/call.h"
#include "controller/api/slots.h"
#include "controller/api/views.h"
#include "controller/engine/engine.h"
#include "controller/policy_watcher.h"
#include "siding/v1/api.pb.h"

namespace siding {

// Thread-safe. Everything passed in must outlive it.
class ApiService final {
 public:
  // Without `backup` there is none to be had.
  ApiService(Engine& engine, PolicyWatcher& policy, const ServiceLimits& limits,
             JournalBackup* backup = nullptr);
  // Ends event streams that follow, so that the server can shut down.
  void Stop() { stopping_ = true; }

  // Whoever brings calls takes a slot for each, and keeps it as long as the call holds a thread.
  CallSlots& calls() { return calls_; }

  absl::Status Submit(const ApiCall&, const v1::SubmitRequest*, v1::SubmitResponse*);
  absl::Status PlanAction(const ApiCall&, const v1::ActionRequest*, v1::ActionPlan*);
  absl::Status PlanRequest(const ApiCall&, const v1::SubmitRequest*, v1::Plan*);
  absl::Status Explain(const ApiCall&, const v1::ExplainRequest*, v1::ExplainResponse*);
  absl::Status ListJobs(const ApiCall&, const v1::ListJobsRequest*, v1::ListJobsResponse*);
  absl::Status ListNodes(const ApiCall&, const v1::ListNodesRequest*, v1::ListNodesResponse*);
  absl::Status Events(const ApiCall&, const v1::EventsRequest*, const Sink<v1::Event>&);
  absl::Status ListCheckpoints(const ApiCall&, const v1::ListCheckpointsRequest*,
                               v1::ListCheckpointsResponse*);
  absl::Status VerifyCheckpoint(const ApiCall&, const v1::CheckpointRef*, v1::VerifyResponse*);
  absl::Status DeleteCheckpoint(const ApiCall&, const v1::CheckpointRef*, v1::Empty*);
  absl::Status Suspend(const ApiCall&, const v1::JobRef*, v1::Empty*);
  absl::Status Resume(const ApiCall&, const v1::JobRef*, v1::Empty*);
  absl::Status Checkpoint(const ApiCall&, const v1::CheckpointRequest*, v1::CheckpointResponse*);
  absl::Status Vacate(const ApiCall&, const v1::CheckpointRequest*, v1::Empty*);
  absl::Status Migrate(const ApiCall&, const v1::MigrateRequest*, v1::Empty*);
  absl::Status Restart(const ApiCall&, const v1::RestartRequest*, v1::Empty*);
  absl::Status Hold(const ApiCall&, const v1::JobRef*, v1::Empty*);
  absl::Status Release(const ApiCall&, const v1::JobRef*, v1::Empty*);
  absl::Status Update(const ApiCall&, const v1::UpdateRequest*, v1::Empty*);
  absl::Status Kill(const ApiCall&, const v1::JobRef*, v1::Empty*);
  absl::Status Cordon(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  absl::Status Uncordon(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  absl::Status Lose(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  absl::Status Site(const ApiCall&, const v1::Empty*, v1::SiteInfo*);
  absl::Status ListTrends(const ApiCall&, const v1::Empty*, v1::TrendsResponse*);
  absl::Status ShowPolicy(const ApiCall&, const v1::Empty*, v1::PolicyInForce*);
  absl::Status ReloadPolicy(const ApiCall&, const v1::Empty*, v1::PolicyReloaded*);
  absl::Status Backup(const ApiCall&, const v1::Empty*, const Sink<v1::BackupPart>&);

  // How those who follow the events ask for them: for up to so many, and so long for the first of these.
  static constexpr size_t kEventBatch = 500;
  static constexpr Duration kEventWait = std::chrono::milliseconds(200);
  // Between two batches for a watcher that has all there is: one event at a time would wake every one of them
  // a hundred times a second.
  static constexpr Duration kEventPause = std::chrono::milliseconds(50);

  // ---- For ways that follow the events without a thread for each follower. ----
  int64_t NewestEvent() const;
  struct EventPart {
    std::vector<v1::Event> events;  // as far as the caller may see them
    int64_t next = 0;               // the sequence on which the next part follows
    bool more = false;              // there is one already, or may be
  };
  // Of the first `limit` events after `seq`; waits up to `wait` for the first of them. Takes no slot.
  EventPart EventsAfter(const ApiCall&, const v1::EventsRequest&, int64_t seq, size_t limit,
                        Duration wait) const;

 private:
  Caller CallerOf(const ApiCall& call) const;
  // The answer to a call that asked the engine for something. The log tells of those who asked for what they
  // may not, or for more than they may.
  absl::Status Reply(const Caller& caller, const char* method, const absl::Status& status) const;
  void NoteRefusal(const Caller& caller, const char* method, const std::string& why) const;
  // For the views, below the engine's Read().
  MaySeeJob SeenBy(const Caller& caller) const;
  // When these are back, as far as it is known. Not within Engine::Read().
  void AddBacks(const Caller& caller, const std::vector<v1::Job*>& views) const;
  // With the `most_kept` of ShowPlan().
  v1::Plan Show(const Caller& caller, Plan plan, int32_t most_kept) const;
  absl::StatusOr<JobSpec> SpecOf(const v1::SubmitRequest& request, const UserIdentity& identity) const;
  // Those of this job (0: of any) that the caller may see.
  std::vector<const Event*> VisibleOf(const std::vector<Event>& events, const Caller& caller,
                                      JobId only) const;

  Engine& engine_;
  PolicyWatcher& policy_;
  JournalBackup* const backup_;
  AllCalls calls_;
  WaitingCalls waiting_calls_;
  PlanningCalls planning_calls_;
  mutable LimitedLog refusals_;
  std::atomic<bool> stopping_{false};
};

}  // namespace siding
