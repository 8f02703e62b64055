#include "controller/platform/kubernetes/client/guarded_transport.h"

#include <utility>

#include "common/status.h"

namespace siding::kubernetes {
namespace {

class GuardedTransport final : public Transport {
 public:
  GuardedTransport(std::unique_ptr<Transport> transport, std::function<absl::Status()> may_act)
      : transport_(std::move(transport)), may_act_(std::move(may_act)) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    if (request.method != HttpMethod::kGet) SIDING_RETURN_IF_ERROR(may_act_());
    return transport_->Send(request, std::move(stop));
  }
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request, const LineReader& reader,
                                      std::stop_token stop) override {
    if (request.method != HttpMethod::kGet) SIDING_RETURN_IF_ERROR(may_act_());
    return transport_->Stream(request, reader, std::move(stop));
  }

 private:
  const std::unique_ptr<Transport> transport_;
  const std::function<absl::Status()> may_act_;
};

}  // namespace

std::unique_ptr<Transport> NewGuardedTransport(std::unique_ptr<Transport> transport,
                                               std::function<absl::Status()> may_act) {
  return std::make_unique<GuardedTransport>(std::move(transport), std::move(may_act));
}

}  // namespace siding::kubernetes
