#include "cli/client.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "cli/controllers.h"
#include "common/status.h"

namespace siding::cli {

using Stub = Controllers::Stub;

class Client::Impl {
 public:
  explicit Impl(const Connection& connection) : controllers(connection) {}

  // Calls a unary method of the stub.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request, Repeat repeat) {
    Response response;
    const absl::Status status = controllers.Call(
        [&](Stub& stub, grpc::ClientContext& context) {
          return (stub.*method)(&context, request, &response);
        },
        repeat);
    if (!status.ok()) return status;
    return response;
  }
  // One that changes nothing, or nothing more the second time.
  template <class Request, class Response>
  absl::StatusOr<Response> Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                               const Request& request) {
    return Call(method, request, Repeat::kYes);
  }
  template <class Request, class Response>
  absl::StatusOr<Response> Order(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                                 const Request& request) {
    return Call(method, request, Repeat::kNo);
  }

  Controllers controllers;
};

namespace {

std::string FreshKey() {
  std::random_device random;
  std::string key;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&key, absl::Hex(random(), absl::kZeroPad8));
  return key;
}

v1::JobRef Ref(int64_t id, int64_t if_unchanged = 0) {
  v1::JobRef ref;
  ref.set_id(id);
  ref.set_if_unchanged(if_unchanged);
  return ref;
}

v1::CheckpointRef Ref(const std::string& id) {
  v1::CheckpointRef ref;
  ref.set_id(id);
  return ref;
}

v1::CheckpointRequest Request(int64_t job, v1::Tier tier, int64_t if_unchanged) {
  v1::CheckpointRequest request;
  request.set_id(job);
  request.set_tier(tier);
  request.set_if_unchanged(if_unchanged);
  return request;
}

}  // namespace

Client::Client(const Connection& connection) : impl_(std::make_unique<Impl>(connection)) {}
Client::~Client() = default;

absl::Status Client::Outlast(Duration absence, std::function<void(const absl::Status&)> away) {
  SIDING_RETURN_IF_ERROR(Site().status());
  impl_->controllers.Outlast(absence, std::move(away));
  return absl::OkStatus();
}

absl::StatusOr<v1::SubmitResponse> Client::Submit(const v1::SubmitRequest& request) {
  v1::SubmitRequest keyed = request;
  if (keyed.request_key().empty()) keyed.set_request_key(FreshKey());
  return impl_->Ask(&Stub::Submit, keyed);
}
absl::StatusOr<v1::Plan> Client::Plan(const v1::SubmitRequest& request) {
  return impl_->Ask(&Stub::PlanRequest, request);
}
absl::StatusOr<v1::ExplainResponse> Client::Explain(int64_t job, bool all_kept) {
  v1::ExplainRequest request;
  request.set_id(job);
  request.set_compare(true);
  request.set_most_kept(all_kept ? -1 : 0);
  return impl_->Ask(&Stub::Explain, request);
}
absl::StatusOr<v1::ListJobsResponse> Client::Jobs(const v1::ListJobsRequest& request) {
  return impl_->Ask(&Stub::ListJobs, request);
}
absl::StatusOr<v1::Job> Client::Job(int64_t id) {
  v1::ListJobsRequest request;
  request.add_ids(id);
  auto response = Jobs(request);
  if (!response.ok()) return response.status();
  return response->jobs(0);
}
absl::StatusOr<v1::ListNodesResponse> Client::Nodes() {
  return impl_->Ask(&Stub::ListNodes, v1::ListNodesRequest());
}

absl::Status Client::Events(const v1::EventsRequest& request,
                            const std::function<bool(const v1::Event&)>& visit) {
  v1::EventsRequest rest = request;
  bool wanted = true;
  const auto read = [&](Stub& stub, grpc::ClientContext& context) {
    const auto reader = stub.Events(&context, rest);
    v1::Event event;
    while (wanted && reader->Read(&event)) {
      rest.set_after_seq(event.seq());
      wanted = visit(event);
    }
    if (!wanted) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return wanted ? status : grpc::Status::OK;
  };
  // A followed stream ends when its controller does, and goes on at the next one; or when nothing of
  // it was read for a minute: its reader had stopped.
  for (;;) {
    const absl::Status status = impl_->controllers.Call(read, Repeat::kYes);
    const bool cut = wanted && request.follow() && absl::IsCancelled(status);
    if (cut) continue;
    if (!status.ok() || !wanted || !request.follow() || !impl_->controllers.streams_go_on()) return status;
  }
}

absl::Status Client::Backup(const std::function<bool(const v1::BackupPart&)>& visit) {
  bool wanted = true;
  const auto read = [&](Stub& stub, grpc::ClientContext& context) {
    const auto reader = stub.Backup(&context, v1::Empty());
    v1::BackupPart part;
    while (wanted && reader->Read(&part)) wanted = visit(part);
    if (!wanted) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return wanted ? status : grpc::Status::OK;
  };
  // Half of one journal and half of another would be none.
  return impl_->controllers.Call(read, Repeat::kNo);
}

absl::StatusOr<v1::ListCheckpointsResponse> Client::Checkpoints(int64_t job) {
  v1::ListCheckpointsRequest request;
  request.set_job(job);
  return impl_->Ask(&Stub::ListCheckpoints, request);
}
absl::StatusOr<v1::VerifyResponse> Client::Verify(const std::string& id) {
  return impl_->Ask(&Stub::VerifyCheckpoint, Ref(id));
}
absl::Status Client::Delete(const std::string& id) {
  return impl_->Order(&Stub::DeleteCheckpoint, Ref(id)).status();
}
absl::StatusOr<v1::ActionPlan> Client::PlanAction(const v1::ActionRequest& request) {
  return impl_->Ask(&Stub::PlanAction, request);
}
absl::Status Client::Suspend(int64_t job, int64_t if_unchanged) {
  return impl_->Order(&Stub::Suspend, Ref(job, if_unchanged)).status();
}
absl::Status Client::Resume(int64_t job) { return impl_->Order(&Stub::Resume, Ref(job)).status(); }
absl::StatusOr<std::string> Client::Checkpoint(int64_t job, v1::Tier tier, int64_t if_unchanged) {
  auto response = impl_->Order(&Stub::Checkpoint, Request(job, tier, if_unchanged));
  if (!response.ok()) return response.status();
  return response->checkpoint();
}
absl::Status Client::Vacate(int64_t job, v1::Tier tier, int64_t if_unchanged) {
  return impl_->Order(&Stub::Vacate, Request(job, tier, if_unchanged)).status();
}
absl::Status Client::Migrate(const v1::MigrateRequest& request) {
  return impl_->Order(&Stub::Migrate, request).status();
}
absl::Status Client::Restart(const v1::RestartRequest& request) {
  return impl_->Order(&Stub::Restart, request).status();
}
absl::Status Client::Hold(int64_t job) { return impl_->Order(&Stub::Hold, Ref(job)).status(); }
absl::Status Client::Release(int64_t job) { return impl_->Order(&Stub::Release, Ref(job)).status(); }
absl::Status Client::Update(const v1::UpdateRequest& request) {
  return impl_->Order(&Stub::Update, request).status();
}

absl::Status Client::Kill(int64_t job, int64_t if_unchanged) {
  return impl_->Order(&Stub::Kill, Ref(job, if_unchanged)).status();
}
absl::Status Client::Cordon(const std::string& node, bool cordon, int64_t if_unchanged) {
  v1::NodeRef ref;
  ref.set_name(node);
  ref.set_if_unchanged(if_unchanged);
  return impl_->Ask(cordon ? &Stub::Cordon : &Stub::Uncordon, ref).status();
}
absl::Status Client::Lose(const std::string& node) {
  v1::NodeRef ref;
  ref.set_name(node);
  return impl_->Ask(&Stub::Lose, ref).status();
}
absl::StatusOr<v1::SiteInfo> Client::Site() { return impl_->Ask(&Stub::Site, v1::Empty()); }
std::map<std::string, absl::Status> Client::LookAtEach() {
  return impl_->controllers.AskEach([](Stub& stub, grpc::ClientContext& context) {
    v1::SiteInfo site;
    return stub.Site(&context, v1::Empty(), &site);
  });
}
absl::StatusOr<v1::TrendsResponse> Client::Trends() { return impl_->Ask(&Stub::ListTrends, v1::Empty()); }
absl::StatusOr<v1::PolicyInForce> Client::Policy() { return impl_->Ask(&Stub::ShowPolicy, v1::Empty()); }
absl::StatusOr<v1::PolicyReloaded> Client::ReloadPolicy() {
  return impl_->Ask(&Stub::ReloadPolicy, v1::Empty());
}

}  // namespace siding::cli
