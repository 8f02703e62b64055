#include "controller/ha/standby.h"

#include <grpcpp/generic/async_generic_service.h>

#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/tls/endpoint.h"
#include "controller/ha/agent_contacts.h"
#include "controller/identity/certificate_identity.h"
#include "controller/metrics/metrics.h"
#include "controller/server.h"

namespace siding {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(200);
constexpr char kDial[] = "/siding.v1.AgentGateway/Connect";

// Every call ends at once with UNAVAILABLE and the name of the controller to ask. Which agents have
// asked is noted.
class RefuseAll final : public grpc::CallbackGenericService {
 public:
  explicit RefuseAll(AgentContactsFile& contacts) : contacts_(contacts) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kDial) {
      // Those that have a certificate: others are on this machine, and no network keeps them from any
      // controller here.
      const auto agent = CertificateIdentities().AgentOf({*context, "Connect"});
      if (agent.ok() && agent->node) contacts_.Count(*agent->node);
    }
    context->AddTrailingMetadata(kStandsByMetadata, "1");
    return new Reply(grpc::Status(grpc::StatusCode::UNAVAILABLE, words()));
  }
  void SetHolder(const LeaseRecord& holder) {
    MutexLock lock(mutex_);
    holder_ = HolderOf(holder);
  }

 private:
  // Deletes itself when gRPC is done with it.
  class Reply final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reply(const grpc::Status& status) { Finish(status); }
    void OnDone() override { delete this; }
  };

  std::string words() const {
    MutexLock lock(mutex_);
    return absl::StrCat("this controller stands by; the active one is ", holder_);
  }

  AgentContactsFile& contacts_;
  mutable Mutex mutex_;
  std::string holder_ ABSL_GUARDED_BY(mutex_);
};

// What is served while this controller stands by.
class StandbyServer {
 public:
  static absl::StatusOr<std::unique_ptr<StandbyServer>> Start(const ControllerConfig& config,
                                                              const MakeStandbyView& make_view) {
    std::unique_ptr<StandbyServer> serving(new StandbyServer(config));
    SIDING_ASSIGN_OR_RETURN(serving->metrics_,
                            Metrics::StartStandingBy(config.metrics_address, config.metrics_port));
    SIDING_ASSIGN_OR_RETURN(serving->server_,
                            Server::Open(config, serving->local_, [&](grpc::ServerBuilder& builder) {
                              builder.RegisterCallbackGenericService(&serving->service_);
                            }));
    serving->view_ = make_view();
    return serving;
  }
  void SetHolder(const LeaseRecord& holder, bool is_here) {
    service_.SetHolder(holder);
    view_->SetHolder(holder, is_here);
  }
  // For the active one to read. A storage that cannot be written to has been complained of by that one.
  void WriteContacts() { contacts_.Write().IgnoreError(); }

 private:
  explicit StandbyServer(const ControllerConfig& config)
      : local_(config.limits), contacts_(JournalOf(config), AddressOf(config)) {}

  LocalIdentities local_;
  AgentContactsFile contacts_;
  RefuseAll service_{contacts_};
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<StandbyView> view_;
};

// True: a signal to stop has come.
bool Pause(const sigset_t& stop) {
  const timespec look{0, std::chrono::nanoseconds(kLookEvery).count()};
  const int signal = sigtimedwait(&stop, nullptr, &look);
  TurnLogLevel(signal);
  return signal == SIGTERM || signal == SIGINT;
}

// One attempt. kUnavailable: something that passes, for who stands by.
absl::StatusOr<std::unique_ptr<Journal>> TakeOver(const ControllerConfig& config, Lease& lease) {
  const LeaseRecord before = lease.seen();
  auto journal = OpenSqliteJournal(JournalOf(config), lease);
  if (absl::IsUnavailable(journal.status())) lease.EndSilentHolder();
  if (!absl::IsFailedPrecondition(journal.status())) return journal;
  lease.Look();
  if (lease.seen() == before) return journal;
  return absl::UnavailableError(journal.status().message());  // another one was faster
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> AwaitJournal(const ControllerConfig& config, Lease& lease,
                                                      const sigset_t& stop,
                                                      const MakeStandbyView& make_view) {
  std::unique_ptr<StandbyServer> serving;
  int64_t holder = 0;  // its epoch
  do {
    const LeaseWatch::Verdict verdict = lease.Look();
    if (verdict == LeaseWatch::Verdict::kFree) {
      if (serving != nullptr) spdlog::warn("{} is gone or silent: taking over", HolderOf(lease.seen()));
      auto journal = TakeOver(config, lease);
      if (journal.ok() || !config.standby || !absl::IsUnavailable(journal.status())) return journal;
      spdlog::warn("not taken over: {}", std::string(journal.status().message()));
      continue;
    }
    if (!config.standby && verdict == LeaseWatch::Verdict::kHeld) {
      return absl::FailedPreconditionError(
          absl::StrCat(JournalOf(config), " is in use by another sidingd: ", HolderOf(lease.seen())));
    }
    if (config.standby && serving == nullptr) {
      SIDING_ASSIGN_OR_RETURN(serving, StandbyServer::Start(config, make_view));
    }
    if (serving != nullptr) serving->WriteContacts();
    if (std::exchange(holder, lease.seen().epoch) != lease.seen().epoch) {
      if (serving != nullptr) serving->SetHolder(lease.seen(), lease.IsHere(lease.seen()));
      spdlog::info("{}: {} has {}", serving != nullptr ? "standing by" : "waiting for a sign of life",
                   HolderOf(lease.seen()), JournalOf(config));
    }
  } while (!Pause(stop));
  return nullptr;
}

}  // namespace siding
