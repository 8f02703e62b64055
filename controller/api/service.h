// The gRPC service of users, operators and administrators. Only translates: who asks, what they ask, and the
// engine's answer.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/backup.h"
#include "controller/api/slots.h"
#include "controller/api/views.h"
#include "controller/engine/engine.h"
#include "controller/identity/identity.h"
#include "controller/policy_watcher.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {

// Thread-safe. Everything passed in must outlive it.
class ApiService final : public v1::Siding::Service {
 public:
  // Without `backup` there is none to be had.
  ApiService(Engine& engine, PolicyWatcher& policy, const Identities& identities, const ServiceLimits& limits,
             JournalBackup* backup = nullptr);
  // Ends event streams that follow, so that the server can shut down.
  void Stop() { stopping_ = true; }

  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*, v1::SubmitResponse*) override;
  grpc::Status PlanRequest(grpc::ServerContext*, const v1::SubmitRequest*, v1::Plan*) override;
  grpc::Status Explain(grpc::ServerContext*, const v1::JobRef*, v1::ExplainResponse*) override;
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*, v1::ListJobsResponse*) override;
  grpc::Status ListNodes(grpc::ServerContext*, const v1::ListNodesRequest*, v1::ListNodesResponse*) override;
  grpc::Status Events(grpc::ServerContext*, const v1::EventsRequest*,
                      grpc::ServerWriter<v1::Event>*) override;
  grpc::Status ListCheckpoints(grpc::ServerContext*, const v1::ListCheckpointsRequest*,
                               v1::ListCheckpointsResponse*) override;
  grpc::Status VerifyCheckpoint(grpc::ServerContext*, const v1::CheckpointRef*, v1::VerifyResponse*) override;
  grpc::Status DeleteCheckpoint(grpc::ServerContext*, const v1::CheckpointRef*, v1::Empty*) override;
  grpc::Status Suspend(grpc::ServerContext*, const v1::JobRef*, v1::Empty*) override;
  grpc::Status Resume(grpc::ServerContext*, const v1::JobRef*, v1::Empty*) override;
  grpc::Status Checkpoint(grpc::ServerContext*, const v1::CheckpointRequest*,
                          v1::CheckpointResponse*) override;
  grpc::Status Vacate(grpc::ServerContext*, const v1::CheckpointRequest*, v1::Empty*) override;
  grpc::Status Migrate(grpc::ServerContext*, const v1::MigrateRequest*, v1::Empty*) override;
  grpc::Status Restart(grpc::ServerContext*, const v1::JobRef*, v1::Empty*) override;
  grpc::Status Kill(grpc::ServerContext*, const v1::JobRef*, v1::Empty*) override;
  grpc::Status Cordon(grpc::ServerContext*, const v1::NodeRef*, v1::Empty*) override;
  grpc::Status Uncordon(grpc::ServerContext*, const v1::NodeRef*, v1::Empty*) override;
  grpc::Status Lose(grpc::ServerContext*, const v1::NodeRef*, v1::Empty*) override;
  grpc::Status Site(grpc::ServerContext*, const v1::Empty*, v1::SiteInfo*) override;
  grpc::Status ShowPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyInForce*) override;
  grpc::Status ReloadPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyReloaded*) override;
  grpc::Status Backup(grpc::ServerContext*, const v1::Empty*, grpc::ServerWriter<v1::BackupPart>*) override;

 private:
  // `method` is the name of the call. To be asked once for each.
  absl::StatusOr<Caller> CallerOf(grpc::ServerContext* context, const char* method,
                                  UserIdentity* identity = nullptr) const;
  // For the views, below the engine's Read().
  MaySeeJob SeenBy(const Caller& caller) const;
  absl::StatusOr<JobSpec> SpecOf(const v1::SubmitRequest& request, const UserIdentity& identity) const;
  // Those of this job (0: of any) that the caller may see.
  std::vector<const Event*> VisibleOf(const std::vector<Event>& events, const Caller& caller,
                                      JobId only) const;

  Engine& engine_;
  PolicyWatcher& policy_;
  const Identities& identities_;
  JournalBackup* const backup_;
  WaitingCalls waiting_calls_;
  std::atomic<bool> stopping_{false};
};

}  // namespace siding
