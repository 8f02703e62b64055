#include "cli/controllers.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/munge/munge.h"
#include "common/since.h"
#include "common/status.h"
#include "common/tls/credentials.h"
#include "common/tls/endpoint.h"

namespace siding::cli {
namespace {

// A take-over takes less.
constexpr auto kPatience = std::chrono::seconds(15);
constexpr auto kBetweenRounds = std::chrono::milliseconds(250);
constexpr auto kToConnect = std::chrono::seconds(2);
constexpr auto kToAnswer = std::chrono::seconds(5);         // where nobody waits for it to
constexpr auto kToLookUp = std::chrono::milliseconds(100);  // whether it is still wanted

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

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const Connection& connection,
                                                                         const std::string& controller) {
  if (!ParseEndpoint(controller).remote) return grpc::InsecureChannelCredentials();
  if (connection.tls.certificate.empty() && !connection.munge) {
    return absl::InvalidArgumentError(absl::StrCat("no certificate to show to the controller at ", controller,
                                                   "; expected --certificate or --munge"));
  }
  SIDING_ASSIGN_OR_RETURN(const auto tls, TlsChannelCredentials(connection.tls, SystemClock()));
  if (!connection.munge) return tls;
  return grpc::CompositeChannelCredentials(
      tls, grpc::MetadataCredentialsFromPlugin(std::make_unique<MungeCredentials>(connection.munge_socket)));
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

// One that stands by says so, and has done nothing.
bool StandsBy(const grpc::ClientContext& context) {
  return context.GetServerTrailingMetadata().count(kStandsByMetadata) > 0;
}

// Killed, it leaves nothing; one that stops, or that stood by and takes over, cancels the calls it still has.
bool WentAway(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsCancelled(status); }

}  // namespace

Controllers::Controllers(const Connection& connection) : connection_(connection), patience_(kPatience) {
  for (const absl::string_view address : absl::StrSplit(connection.controller, ',')) {
    controllers_.emplace_back().address = std::string(address);
  }
}
Controllers::~Controllers() = default;

absl::Status Controllers::Dial(Controller& controller) const {
  if (controller.channel != nullptr) return absl::OkStatus();
  SIDING_ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(connection_, controller.address));
  grpc::ChannelArguments arguments;
  // gRPC's own limit is 4 MiB for an answer; a long queue is longer.
  arguments.SetMaxReceiveMessageSize(-1);
  // Dialled again when it is asked again, and not in gRPC's own time.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const Endpoint endpoint = ParseEndpoint(controller.address);
  if (several()) {
    KeepAliveClosely(arguments);
  } else if (endpoint.remote) {
    KeepAlive(arguments);
  }
  // What it would say of a failure is in the failure's status.
  if (several() || endpoint.remote) gpr_set_log_function([](gpr_log_func_args*) {});
  controller.channel = grpc::CreateCustomChannel(endpoint.target, credentials, arguments);
  controller.stub = v1::Siding::NewStub(controller.channel);
  return absl::OkStatus();
}

// Before anything is asked: a call that no controller has heard may be made to another one.
absl::Status Controllers::Reached(const Controller& controller) const {
  const auto deadline = std::chrono::system_clock::now() + kToConnect;
  for (;;) {
    const grpc_connectivity_state state = controller.channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) return absl::UnavailableError("it cannot be reached");
    const auto now = std::chrono::system_clock::now();
    if (now >= deadline) return absl::UnavailableError("it does not answer");
    if (IsCancelled()) return absl::CancelledError();
    controller.channel->WaitForStateChange(state, std::min(deadline, now + kToLookUp));
  }
}

void Controllers::Cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  if (under_way_ != nullptr) under_way_->TryCancel();
}

bool Controllers::IsCancelled() const {
  MutexLock lock(mutex_);
  return cancelled_;
}

grpc::Status Controllers::Make(const Attempt& attempt, Controller& controller, grpc::ClientContext& context) {
  {
    MutexLock lock(mutex_);
    if (cancelled_) return grpc::Status(grpc::StatusCode::CANCELLED, "it is not wanted any more");
    under_way_ = &context;
  }
  const grpc::Status status = attempt(*controller.stub, context);
  MutexLock lock(mutex_);
  under_way_ = nullptr;
  return status;
}

absl::Status Controllers::CallOne(Controller& controller, const Attempt& attempt) {
  SIDING_RETURN_IF_ERROR(Dial(controller));
  grpc::ClientContext context;
  const absl::Status status = FromGrpc(Make(attempt, controller, context));
  if (!absl::IsUnavailable(status)) return status;
  // It is there, and names the one to ask.
  if (StandsBy(context)) return Annotate(status, controller.address);
  const char* advice = ParseEndpoint(controller.address).remote ? "" : "; is sidingd running?";
  return absl::UnavailableError(
      absl::StrCat("no controller answers on ", controller.address, advice, " (", status.message(), ")"));
}

absl::Status Controllers::CallOneOf(const Attempt& attempt, Repeat repeat) {
  auto began = std::chrono::steady_clock::now();  // to look for one that answers
  std::string problems;                           // of this round
  bool told = false;
  for (size_t count = 1;; ++count) {
    Controller& controller = controllers_[turn_];
    SIDING_RETURN_IF_ERROR(Dial(controller));
    absl::Status status = Reached(controller);
    if (status.ok()) {
      grpc::ClientContext context;
      const auto asked = std::chrono::steady_clock::now();
      status = FromGrpc(Make(attempt, controller, context));
      if (!WentAway(status)) return status;
      if (Since(asked) > kPatience) {  // it has answered for long
        began = std::chrono::steady_clock::now();
        told = false;
      }
      if (repeat == Repeat::kNo && !StandsBy(context)) {
        return absl::AbortedError(absl::StrCat("the controller at ", controller.address,
                                               " went away before it had answered; see whether it was done (",
                                               status.message(), ")"));
      }
    }
    if (IsCancelled()) return absl::CancelledError("it is not wanted any more");
    absl::StrAppend(&problems, problems.empty() ? "" : "; ", controller.address, ": ", status.message());
    controller.stub.reset();
    controller.channel.reset();
    turn_ = (turn_ + 1) % controllers_.size();
    if (count % controllers_.size() != 0) continue;
    const absl::Status none = absl::UnavailableError(absl::StrCat("no controller is active: ", problems));
    if (Since(began) > patience_) return none;
    const bool is_taken_over = several() && Since(began) <= kPatience;  // most likely
    if (away_ != nullptr && !is_taken_over && !std::exchange(told, true)) away_(none);
    problems.clear();
    std::this_thread::sleep_for(kBetweenRounds);
  }
}

absl::Status Controllers::AskAlone(Controller& controller, const Attempt& attempt) {
  SIDING_RETURN_IF_ERROR(Dial(controller));
  SIDING_RETURN_IF_ERROR(Reached(controller));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kToAnswer);  // it may have stopped
  const absl::Status status = FromGrpc(Make(attempt, controller, context));
  return StandsBy(context) ? absl::OkStatus() : status;
}

std::map<std::string, absl::Status> Controllers::AskEach(const Attempt& attempt) {
  std::map<std::string, absl::Status> answers;
  for (Controller& controller : controllers_) answers[controller.address] = AskAlone(controller, attempt);
  return answers;
}

absl::Status Controllers::Call(const Attempt& attempt, Repeat repeat) {
  return several() || away_ != nullptr ? CallOneOf(attempt, repeat) : CallOne(controllers_.front(), attempt);
}

void Controllers::Outlast(Duration absence, OnAway away) {
  patience_ = absence;
  away_ = std::move(away);
}

}  // namespace siding::cli
