#include "controller/api/grpc_api.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "controller/api/time_limit.h"
#include "controller/wire/grpc_status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

int IndexOf(const std::string& method) {
  return v1::JobRef::descriptor()->file()->FindServiceByName("Siding")->FindMethodByName(method)->index();
}

}  // namespace

template <class Response>
class GrpcApi::Answer final : public grpc::internal::WriterInterface<Response> {
 public:
  Answer(grpc::ServerContext& context, const UserIdentity& identity, const char* method, Duration unread,
         grpc::internal::WriterInterface<Response>& stream)
      : context_(context), identity_(identity), method_(method), unread_(unread), stream_(stream) {}

  using grpc::internal::WriterInterface<Response>::Write;
  bool Write(const Response& response, grpc::WriteOptions options) override {
    TimeLimit limit(context_, unread_);
    const bool written = stream_.Write(response, options);
    if (limit.IsOver()) {
      spdlog::warn("{} by user {} is ended: nothing of the answer was read for {}", method_, identity_.user,
                   FormatDuration(unread_));
    }
    return written;
  }

 private:
  grpc::ServerContext& context_;
  const UserIdentity& identity_;
  const char* const method_;
  const Duration unread_;
  grpc::internal::WriterInterface<Response>& stream_;
};

template <class Request>
absl::StatusOr<UserIdentity> GrpcApi::Receive(grpc::ServerContext& context, const char* method,
                                              grpc::internal::ReaderInterface<Request>& stream,
                                              Request& request) {
  auto identity = reception_.Take(context, method, [&] { return stream.Read(&request); });
  if (identity.ok() && request.ByteSizeLong() > kMostFromUser) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: expected at most ", kMostFromUser, " bytes, got ", request.ByteSizeLong()));
  }
  return identity;
}

// To gRPC a plain call is then a stream of one message each way: it hands over the call when the headers are
// there, and takes no more of the message than a window's worth before it is read.
template <class Request, class Response>
void GrpcApi::Add(const char* method,
                  grpc::Status (ApiService::*call)(const ApiCall&, const Request*, Response*)) {
  using Stream = grpc::ServerUnaryStreamer<Request, Response>;
  const auto handle = [this, method, call](grpc::ServerContext* context, Stream* stream) {
    Request request;
    const auto identity = Receive<Request>(*context, method, *stream, request);
    if (!identity.ok()) return ToGrpc(identity.status());
    const CallSlots::Slot slot(calls_, identity->uid);
    if (!slot.status.ok()) return ToGrpc(slot.status);
    Response response;
    const grpc::Status status = (api_.*call)({*context, *identity}, &request, &response);
    if (status.ok()) Answer<Response>(*context, *identity, method, unread_, *stream).Write(response);
    return status;
  };
  MarkMethodStreamed(IndexOf(method), new grpc::internal::StreamedUnaryHandler<Request, Response>(handle));
}

template <class Request, class Response>
void GrpcApi::Add(const char* method,
                  grpc::Status (ApiService::*call)(const ApiCall&, const Request*,
                                                   grpc::internal::WriterInterface<Response>*)) {
  using Stream = grpc::ServerSplitStreamer<Request, Response>;
  const auto handle = [this, method, call](grpc::ServerContext* context, Stream* stream) {
    Request request;
    const auto identity = Receive<Request>(*context, method, *stream, request);
    if (!identity.ok()) return ToGrpc(identity.status());
    const CallSlots::Slot slot(calls_, identity->uid);
    if (!slot.status.ok()) return ToGrpc(slot.status);
    Answer<Response> answer(*context, *identity, method, unread_, *stream);
    return (api_.*call)({*context, *identity}, &request, &answer);
  };
  MarkMethodStreamed(IndexOf(method),
                     new grpc::internal::SplitServerStreamingHandler<Request, Response>(handle));
}

GrpcApi::GrpcApi(ApiService& api, const Identities& identities, const ServiceLimits& limits, Duration within,
                 Duration unread)
    : api_(api), unread_(unread), calls_(limits), reception_(identities, limits, within) {
  Add("Submit", &ApiService::Submit);
  Add("PlanRequest", &ApiService::PlanRequest);
  Add("Explain", &ApiService::Explain);
  Add("ListJobs", &ApiService::ListJobs);
  Add("ListNodes", &ApiService::ListNodes);
  Add("Events", &ApiService::Events);
  Add("ListCheckpoints", &ApiService::ListCheckpoints);
  Add("VerifyCheckpoint", &ApiService::VerifyCheckpoint);
  Add("DeleteCheckpoint", &ApiService::DeleteCheckpoint);
  Add("Suspend", &ApiService::Suspend);
  Add("Resume", &ApiService::Resume);
  Add("Checkpoint", &ApiService::Checkpoint);
  Add("Vacate", &ApiService::Vacate);
  Add("Migrate", &ApiService::Migrate);
  Add("Restart", &ApiService::Restart);
  Add("Hold", &ApiService::Hold);
  Add("Release", &ApiService::Release);
  Add("Update", &ApiService::Update);
  Add("Kill", &ApiService::Kill);
  Add("Cordon", &ApiService::Cordon);
  Add("Uncordon", &ApiService::Uncordon);
  Add("Lose", &ApiService::Lose);
  Add("Site", &ApiService::Site);
  Add("ShowPolicy", &ApiService::ShowPolicy);
  Add("ReloadPolicy", &ApiService::ReloadPolicy);
  Add("Backup", &ApiService::Backup);
}

}  // namespace siding
