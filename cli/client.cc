#include "cli/client.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"
#include "common/munge/munge.h"
#include "common/status.h"
#include "common/tls/credentials.h"
#include "common/tls/endpoint.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {

using Stub = v1::Siding::Stub;

namespace {

// A fresh MUNGE credential with each call.
class MungeCredentials final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit MungeCredentials(std::string socket) : socket_(std::move(socket)) {}
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref method, const grpc::AuthContext&,
                           std::multimap<std::string, std::string>* metadata) override {
    auto credential = MungeEncode(MungePayload(std::string(method.data(), method.size())), socket_);
    if (!credential.ok()) {
      return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(credential.status().message()));
    }
    metadata->emplace(kMungeMetadata, *std::move(credential));
    return grpc::Status::OK;
  }

 private:
  const std::string socket_;
};

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const Connection& connection) {
  if (!ParseEndpoint(connection.controller).remote) return grpc::InsecureChannelCredentials();
  if (connection.tls.certificate.empty() && !connection.munge) {
    return absl::InvalidArgumentError(absl::StrCat("no certificate to show to the controller at ",
                                                   connection.controller,
                                                   "; expected --certificate or --munge"));
  }
  SIDING_ASSIGN_OR_RETURN(const auto tls, TlsChannelCredentials(connection.tls, SystemClock()));
  if (!connection.munge) return tls;
  return grpc::CompositeChannelCredentials(
      tls, grpc::MetadataCredentialsFromPlugin(std::make_unique<MungeCredentials>(connection.munge_socket)));
}

}  // namespace

class Client::Impl {
 public:
  explicit Impl(const Connection& connection) : controller_(connection.controller) {
    const auto credentials = CredentialsFor(connection);
    if (!credentials.ok()) {
      problem_ = credentials.status();
      return;
    }
    grpc::ChannelArguments arguments;
    // gRPC's own limit is 4 MiB for an answer; a long queue is longer.
    arguments.SetMaxReceiveMessageSize(-1);
    const Endpoint endpoint = ParseEndpoint(controller_);
    remote_ = endpoint.remote;
    if (remote_) {
      KeepAlive(arguments);
      // What it would say of a failure is in the failure's status.
      gpr_set_log_function([](gpr_log_func_args*) {});
    }
    stub_ = v1::Siding::NewStub(grpc::CreateCustomChannel(endpoint.target, *credentials, arguments));
  }

  absl::Status FromGrpc(const grpc::Status& status) const {
    if (status.ok()) return absl::OkStatus();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      const char* advice = remote_ ? "" : "; is sidingd running?";
      return absl::UnavailableError(
          absl::StrCat("no controller answers on ", controller_, advice, " (", status.error_message(), ")"));
    }
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }

  // Calls a unary method of the stub.
  template <class Request, class Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                                const Request& request) {
    SIDING_RETURN_IF_ERROR(problem_);
    grpc::ClientContext context;
    Response response;
    const absl::Status status = FromGrpc((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

  // Calls a method of the stub that streams, until the stream ends or `visit` returns false.
  template <class Request, class Part>
  absl::Status Read(std::unique_ptr<grpc::ClientReader<Part>> (Stub::*method)(grpc::ClientContext*,
                                                                              const Request&),
                    const Request& request, const std::function<bool(const Part&)>& visit) {
    SIDING_RETURN_IF_ERROR(problem_);
    grpc::ClientContext context;
    const auto reader = (stub_.get()->*method)(&context, request);
    Part part;
    bool wanted = true;
    while (wanted && reader->Read(&part)) wanted = visit(part);
    if (!wanted) context.TryCancel();
    const absl::Status status = FromGrpc(reader->Finish());
    return wanted ? status : absl::OkStatus();
  }

 private:
  const std::string controller_;
  bool remote_ = false;
  absl::Status problem_;
  std::unique_ptr<Stub> stub_;
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

Client::Client(const Connection& connection) : impl_(std::make_unique<Impl>(connection)) {}
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
  return impl_->Read(&Stub::Events, request, visit);
}
absl::Status Client::Backup(const std::function<bool(const v1::BackupPart&)>& visit) {
  return impl_->Read(&Stub::Backup, v1::Empty(), visit);
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
