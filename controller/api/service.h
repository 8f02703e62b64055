// The service of users, operators and administrators. Only translates: what they ask, and the engine's
// answer. GrpcApi (grpc_api.h) is what gRPC sees of it.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/limited_log.h"
#include "controller/api/backup.h"
#include "controller/api/slots.h"
#include "controller/api/views.h"
#include "controller/engine/engine.h"
#include "controller/identity/identity.h"
#include "controller/policy_watcher.h"
#include "siding/v1/api.pb.h"

namespace siding {

// A call whose request has come.
struct ApiCall {
  grpc::ServerContext& context;
  UserIdentity identity;  // whose it is
};

// Thread-safe. Everything passed in must outlive it.
class ApiService final {
 public:
  // Without `backup` there is none to be had.
  ApiService(Engine& engine, PolicyWatcher& policy, const ServiceLimits& limits,
             JournalBackup* backup = nullptr);
  // Ends event streams that follow, so that the server can shut down.
  void Stop() { stopping_ = true; }

  grpc::Status Submit(const ApiCall&, const v1::SubmitRequest*, v1::SubmitResponse*);
  grpc::Status PlanRequest(const ApiCall&, const v1::SubmitRequest*, v1::Plan*);
  grpc::Status Explain(const ApiCall&, const v1::ExplainRequest*, v1::ExplainResponse*);
  grpc::Status ListJobs(const ApiCall&, const v1::ListJobsRequest*, v1::ListJobsResponse*);
  grpc::Status ListNodes(const ApiCall&, const v1::ListNodesRequest*, v1::ListNodesResponse*);
  grpc::Status Events(const ApiCall&, const v1::EventsRequest*, grpc::internal::WriterInterface<v1::Event>*);
  grpc::Status ListCheckpoints(const ApiCall&, const v1::ListCheckpointsRequest*,
                               v1::ListCheckpointsResponse*);
  grpc::Status VerifyCheckpoint(const ApiCall&, const v1::CheckpointRef*, v1::VerifyResponse*);
  grpc::Status DeleteCheckpoint(const ApiCall&, const v1::CheckpointRef*, v1::Empty*);
  grpc::Status Suspend(const ApiCall&, const v1::JobRef*, v1::Empty*);
  grpc::Status Resume(const ApiCall&, const v1::JobRef*, v1::Empty*);
  grpc::Status Checkpoint(const ApiCall&, const v1::CheckpointRequest*, v1::CheckpointResponse*);
  grpc::Status Vacate(const ApiCall&, const v1::CheckpointRequest*, v1::Empty*);
  grpc::Status Migrate(const ApiCall&, const v1::MigrateRequest*, v1::Empty*);
  grpc::Status Restart(const ApiCall&, const v1::RestartRequest*, v1::Empty*);
  grpc::Status Hold(const ApiCall&, const v1::JobRef*, v1::Empty*);
  grpc::Status Release(const ApiCall&, const v1::JobRef*, v1::Empty*);
  grpc::Status Update(const ApiCall&, const v1::UpdateRequest*, v1::Empty*);
  grpc::Status Kill(const ApiCall&, const v1::JobRef*, v1::Empty*);
  grpc::Status Cordon(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  grpc::Status Uncordon(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  grpc::Status Lose(const ApiCall&, const v1::NodeRef*, v1::Empty*);
  grpc::Status Site(const ApiCall&, const v1::Empty*, v1::SiteInfo*);
  grpc::Status ShowPolicy(const ApiCall&, const v1::Empty*, v1::PolicyInForce*);
  grpc::Status ReloadPolicy(const ApiCall&, const v1::Empty*, v1::PolicyReloaded*);
  grpc::Status Backup(const ApiCall&, const v1::Empty*, grpc::internal::WriterInterface<v1::BackupPart>*);

 private:
  Caller CallerOf(const ApiCall& call) const;
  // The answer to a call that asked the engine for something. The log tells of those who asked for what they
  // may not, or for more than they may.
  grpc::Status Reply(const Caller& caller, const char* method, const absl::Status& status) const;
  void NoteRefusal(const Caller& caller, const char* method, const std::string& why) const;
  // For the views, below the engine's Read().
  MaySeeJob SeenBy(const Caller& caller) const;
  // When these are back, as far as it is known. Not within Engine::Read().
  void AddBacks(const std::vector<v1::Job*>& views) const;
  absl::StatusOr<JobSpec> SpecOf(const v1::SubmitRequest& request, const UserIdentity& identity) const;
  // Those of this job (0: of any) that the caller may see.
  std::vector<const Event*> VisibleOf(const std::vector<Event>& events, const Caller& caller,
                                      JobId only) const;

  Engine& engine_;
  PolicyWatcher& policy_;
  JournalBackup* const backup_;
  WaitingCalls waiting_calls_;
  PlanningCalls planning_calls_;
  mutable LimitedLog refusals_;
  std::atomic<bool> stopping_{false};
};

}  // namespace siding
