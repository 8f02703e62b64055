// The gRPC service of users, operators and administrators. Only translates: who asks, what they ask, and the
// engine's answer.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "controller/api/local_identity.h"
#include "controller/api/slots.h"
#include "controller/engine/engine.h"
#include "controller/policy_watcher.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {

// Thread-safe. Everything passed in must outlive it.
class ApiService final : public v1::Siding::Service {
 public:
  using Identify = std::function<absl::StatusOr<PeerIdentity>(const std::string& peer)>;
  ApiService(Engine& engine, PolicyWatcher& policy, Identify identify, const ServiceLimits& limits);
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
  grpc::Status Kill(grpc::ServerContext*, const v1::JobRef*, v1::Empty*) override;
  grpc::Status Cordon(grpc::ServerContext*, const v1::NodeRef*, v1::Empty*) override;
  grpc::Status Uncordon(grpc::ServerContext*, const v1::NodeRef*, v1::Empty*) override;
  grpc::Status Site(grpc::ServerContext*, const v1::Empty*, v1::SiteInfo*) override;
  grpc::Status ShowPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyInForce*) override;
  grpc::Status ReloadPolicy(grpc::ServerContext*, const v1::Empty*, v1::PolicyReloaded*) override;

 private:
  absl::StatusOr<Caller> CallerOf(grpc::ServerContext* context, PeerIdentity* identity = nullptr) const;
  absl::StatusOr<JobSpec> SpecOf(const v1::SubmitRequest& request, const PeerIdentity& identity) const;

  Engine& engine_;
  PolicyWatcher& policy_;
  const Identify identify_;
  WaitingCalls waiting_calls_;
  std::atomic<bool> stopping_{false};
};

}  // namespace siding
