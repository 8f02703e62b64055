// The API as gRPC sees it: every method is received by Reception, and then done by ApiService.
#pragma once

#include <functional>

#include "controller/api/call_counts.h"
#include "controller/api/reception.h"
#include "controller/api/service.h"
#include "controller/identity/identity.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding {

// Thread-safe. Everything passed in must outlive it.
class GrpcApi final : public v1::Siding::Service {
 public:
  // A request that is not there `within` that time is given up, and so is a call whose caller reads nothing
  // of its answer for `unread`.
  GrpcApi(ApiService& api, const Identities& identities, const ServiceLimits& limits,
          Duration within = std::chrono::seconds(10), Duration unread = std::chrono::seconds(60));
  const CallCounts& counts() const { return counts_; }

 private:
  template <class Request, class Response>
  void Add(const char* method, absl::Status (ApiService::*call)(const ApiCall&, const Request*, Response*));
  template <class Request, class Response>
  void Add(const char* method,
           absl::Status (ApiService::*call)(const ApiCall&, const Request*, const Sink<Response>&));
  template <class Request>
  absl::StatusOr<UserIdentity> Receive(grpc::ServerContext& context, const char* method,
                                       grpc::internal::ReaderInterface<Request>& stream, Request& request);
  // Receives a call and does it: `answer` is asked to, with the slots that it needs.
  template <class Request, class Stream>
  absl::Status Do(grpc::ServerContext& context, const char* method, Stream& stream,
                  const std::function<absl::Status(const ApiCall&, const Request&)>& answer);
  // The same, counted.
  template <class Request, class Stream>
  grpc::Status Handle(grpc::ServerContext& context, const char* method, Stream& stream,
                      const std::function<absl::Status(const ApiCall&, const Request&)>& answer);
  // Gives the call up, and says so in the log, if the caller does not read. False: it is over.
  template <class Response>
  bool Write(grpc::ServerContext& context, const ApiCall& call, const char* method,
             grpc::internal::WriterInterface<Response>& stream, const Response& response) const;

  const Identities& identities_;
  ApiService& api_;
  const Duration unread_;
  Reception reception_;
  CallCounts counts_;
};

}  // namespace siding
