#include "cli/client.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {

using Stub = v1::Siding::Stub;

namespace {

// gRPC's own limit is 4 MiB for an answer; a long queue is longer.
std::shared_ptr<grpc::Channel> Dial(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(const std::string& socket)
      : socket_(std::filesystem::absolute(socket).string()),
        stub_(v1::Siding::NewStub(Dial("unix:" + socket_))) {}

  absl::Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      return absl::UnavailableError(absl::StrCat("no controller answers on ", socket_,
                                                 "; is sidingd running? (", status.error_message(), ")"));
    }
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  // Calls a unary method of the stub.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    grpc::ClientContext context;
    Response response;
    const absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  Stub& stub() { return *stub_; }

 private:
  const std::string socket_;
  const std::unique_ptr<Stub> stub_;
};

namespace {

v1::JobRef Ref(int64_t id) {
  v1::JobRef ref;
  ref.set_id(id);
  return ref;
}

v1::CheckpointRef Ref(const std::string& id) {
  v1::CheckpointRef ref;
  ref.set_id(id);
  return ref;
}

v1::CheckpointRequest Request(int64_t job, v1::Tier tier) {
  v1::CheckpointRequest request;
  request.set_id(job);
  request.set_tier(tier);
  return request;
}

}  // namespace

Client::Client(const std::string& socket) : impl_(std::make_unique<Impl>(socket)) {}
Client::~Client() = default;

absl::StatusOr<v1::SubmitResponse> Client::Submit(const v1::SubmitRequest& request) {
  return impl_->Call(&Stub::Submit, request);
}
absl::StatusOr<v1::Plan> Client::Plan(const v1::SubmitRequest& request) {
  return impl_->Call(&Stub::PlanRequest, request);
}
absl::StatusOr<v1::ExplainResponse> Client::Explain(int64_t job) {
  return impl_->Call(&Stub::Explain, Ref(job));
}
absl::StatusOr<v1::ListJobsResponse> Client::Jobs(const v1::ListJobsRequest& request) {
  return impl_->Call(&Stub::ListJobs, request);
}
absl::StatusOr<v1::Job> Client::Job(int64_t id) {
  v1::ListJobsRequest request;
  request.add_ids(id);
  auto response = Jobs(request);
  if (!response.ok()) return response.status();
  return response->jobs(0);
}
absl::StatusOr<v1::ListNodesResponse> Client::Nodes() {
  return impl_->Call(&Stub::ListNodes, v1::ListNodesRequest());
}

absl::Status Client::Events(const v1::EventsRequest& request,
                            const std::function<bool(const v1::Event&)>& visit) {
  grpc::ClientContext context;
  const auto reader = impl_->stub().Events(&context, request);
  v1::Event event;
  bool wanted = true;
  while (wanted && reader->Read(&event)) wanted = visit(event);
  if (!wanted) context.TryCancel();
  const absl::Status status = impl_->FromGrpc(reader->Finish());
  return wanted ? status : absl::OkStatus();
}

absl::StatusOr<v1::ListCheckpointsResponse> Client::Checkpoints(int64_t job) {
  v1::ListCheckpointsRequest request;
  request.set_job(job);
  return impl_->Call(&Stub::ListCheckpoints, request);
}
absl::StatusOr<v1::VerifyResponse> Client::Verify(const std::string& id) {
  return impl_->Call(&Stub::VerifyCheckpoint, Ref(id));
}
absl::Status Client::Delete(const std::string& id) {
  return impl_->Call(&Stub::DeleteCheckpoint, Ref(id)).status();
}
absl::Status Client::Suspend(int64_t job) { return impl_->Call(&Stub::Suspend, Ref(job)).status(); }
absl::Status Client::Resume(int64_t job) { return impl_->Call(&Stub::Resume, Ref(job)).status(); }
absl::StatusOr<std::string> Client::Checkpoint(int64_t job, v1::Tier tier) {
  auto response = impl_->Call(&Stub::Checkpoint, Request(job, tier));
  if (!response.ok()) return response.status();
  return response->checkpoint();
}
absl::Status Client::Vacate(int64_t job, v1::Tier tier) {
  return impl_->Call(&Stub::Vacate, Request(job, tier)).status();
}
absl::Status Client::Migrate(const v1::MigrateRequest& request) {
  return impl_->Call(&Stub::Migrate, request).status();
}
absl::Status Client::Kill(int64_t job) { return impl_->Call(&Stub::Kill, Ref(job)).status(); }
absl::Status Client::Cordon(const std::string& node, bool cordon) {
  v1::NodeRef ref;
  ref.set_name(node);
  return impl_->Call(cordon ? &Stub::Cordon : &Stub::Uncordon, ref).status();
}
absl::StatusOr<v1::SiteInfo> Client::Site() { return impl_->Call(&Stub::Site, v1::Empty()); }
absl::StatusOr<v1::PolicyInForce> Client::Policy() { return impl_->Call(&Stub::ShowPolicy, v1::Empty()); }
absl::StatusOr<v1::PolicyReloaded> Client::ReloadPolicy() {
  return impl_->Call(&Stub::ReloadPolicy, v1::Empty());
}

}  // namespace siding::cli
