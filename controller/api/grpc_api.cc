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

template <class Request>
class GrpcArrival final : public Arrival {
 public:
  GrpcArrival(grpc::ServerContext& context, const Identities& identities, const char* method,
              grpc::internal::ReaderInterface<Request>& stream, Request& request)
      : context_(context), identities_(identities), method_(method), stream_(stream), request_(request) {}

  std::string peer() const override { return context_.peer(); }
  absl::StatusOr<UserIdentity> Who() override { return identities_.UserOf({context_, method_}); }
  bool IsCancelled() const override { return context_.IsCancelled(); }
  End Read(Duration within) override {
    TimeLimit limit(context_, within);
    const bool came = stream_.Read(&request_);
    const bool over = limit.IsOver();
    return came ? End::kCame : over ? End::kOver : End::kNothing;
  }

 private:
  grpc::ServerContext& context_;
  const Identities& identities_;
  const char* const method_;
  grpc::internal::ReaderInterface<Request>& stream_;
  Request& request_;
};

}  // namespace

template <class Response>
bool GrpcApi::Write(grpc::ServerContext& context, const ApiCall& call, const char* method,
                    grpc::internal::WriterInterface<Response>& stream, const Response& response) const {
  TimeLimit limit(context, unread_);
  const bool written = stream.Write(response);
  if (limit.IsOver()) {
    spdlog::warn("{} by user {} is ended: nothing of the answer was read for {}", method, call.identity.user,
                 FormatDuration(unread_));
  }
  return written;
}

template <class Request>
absl::StatusOr<UserIdentity> GrpcApi::Receive(grpc::ServerContext& context, const char* method,
                                              grpc::internal::ReaderInterface<Request>& stream,
                                              Request& request) {
  GrpcArrival<Request> arrival(context, identities_, method, stream, request);
  auto identity = reception_.Take(arrival, method);
  if (identity.ok() && request.ByteSizeLong() > kMostFromUser) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: expected at most ", kMostFromUser, " bytes, got ", request.ByteSizeLong()));
  }
  return identity;
}

template <class Request, class Stream>
absl::Status GrpcApi::Do(grpc::ServerContext& context, const char* method, Stream& stream,
                         const std::function<absl::Status(const ApiCall&, const Request&)>& answer) {
  Request request;
  const auto identity = Receive<Request>(context, method, stream, request);
  if (!identity.ok()) return identity.status();
  const CallSlots::Slot slot(api_.calls(), identity->uid);
  if (!slot.status.ok()) return slot.status;
  const int64_t version = identities_.Version();
  const auto has_gone = [&] {
    if (context.IsCancelled()) return true;
    // A call may last as long as its caller likes.
    return identities_.Version() != version && !identities_.StillGood({context, method}).ok();
  };
  return answer({*identity, has_gone}, request);
}

template <class Request, class Stream>
grpc::Status GrpcApi::Handle(grpc::ServerContext& context, const char* method, Stream& stream,
                             const std::function<absl::Status(const ApiCall&, const Request&)>& answer) {
  const grpc::Status status = ToGrpc(Do<Request>(context, method, stream, answer));
  counts_.Add(status.error_code());
  return status;
}

// To gRPC a plain call is then a stream of one message each way: it hands over the call when the headers are
// there, and takes no more of the message than a window's worth before it is read.
template <class Request, class Response>
void GrpcApi::Add(const char* method,
                  absl::Status (ApiService::*call)(const ApiCall&, const Request*, Response*)) {
  using Stream = grpc::ServerUnaryStreamer<Request, Response>;
  const auto handle = [this, method, call](grpc::ServerContext* context, Stream* stream) {
    return Handle<Request>(*context, method, *stream, [&](const ApiCall& api_call, const Request& request) {
      Response response;
      const absl::Status status = (api_.*call)(api_call, &request, &response);
      if (status.ok()) Write<Response>(*context, api_call, method, *stream, response);
      return status;
    });
  };
  MarkMethodStreamed(IndexOf(method), new grpc::internal::StreamedUnaryHandler<Request, Response>(handle));
}

template <class Request, class Response>
void GrpcApi::Add(const char* method,
                  absl::Status (ApiService::*call)(const ApiCall&, const Request*, const Sink<Response>&)) {
  using Stream = grpc::ServerSplitStreamer<Request, Response>;
  const auto handle = [this, method, call](grpc::ServerContext* context, Stream* stream) {
    return Handle<Request>(*context, method, *stream, [&](const ApiCall& api_call, const Request& request) {
      return (api_.*call)(api_call, &request, [&](const Response& response) {
        return Write<Response>(*context, api_call, method, *stream, response);
      });
    });
  };
  MarkMethodStreamed(IndexOf(method),
                     new grpc::internal::SplitServerStreamingHandler<Request, Response>(handle));
}

GrpcApi::GrpcApi(ApiService& api, const Identities& identities, const ServiceLimits& limits, Duration within,
                 Duration unread)
    : identities_(identities), api_(api), unread_(unread), reception_(limits, within) {
  Add("Submit", &ApiService::Submit);
  Add("PlanRequest", &ApiService::PlanRequest);
  Add("PlanAction", &ApiService::PlanAction);
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
  Add("ListTrends", &ApiService::ListTrends);
  Add("ShowPolicy", &ApiService::ShowPolicy);
  Add("ReloadPolicy", &ApiService::ReloadPolicy);
  Add("Backup", &ApiService::Backup);
}

}  // namespace siding
