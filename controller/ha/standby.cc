#include "controller/ha/standby.h"

#include <grpcpp/generic/async_generic_service.h>

#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/logging.h"
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

// Every call there is ends at once with UNAVAILABLE and the name of the controller to ask. Which agents have
// asked is noted.
class AskTheOther final : public grpc::CallbackGenericService {
 public:
  explicit AskTheOther(AgentContactsFile& note) : note_(note) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kDial) {
      // Those that have a certificate: others are on this machine, and no network keeps them from any
      // controller here.
      const auto agent = CertificateIdentities().AgentOf({*context, "Connect"});
      if (agent.ok() && agent->node) note_.Count(*agent->node);
    }
    context->AddTrailingMetadata(kStandsByMetadata, "1");
    return new Reply(grpc::Status(grpc::StatusCode::UNAVAILABLE, words()));
  }
  void SetHolder(const LeaseRecord& holder) {
    std::lock_guard lock(mutex_);
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
    std::lock_guard lock(mutex_);
    return absl::StrCat("this controller stands by; the active one is ", holder_);
  }

  AgentContactsFile& note_;
  mutable std::mutex mutex_;
  std::string holder_;  // guarded by mutex_
};

// What is served meanwhile.
class Meanwhile {
 public:
  static absl::StatusOr<std::unique_ptr<Meanwhile>> Start(const ControllerConfig& config) {
    std::unique_ptr<Meanwhile> meanwhile(new Meanwhile(config));
    SIDING_ASSIGN_OR_RETURN(meanwhile->metrics_, Metrics::StartStandingBy(config.metrics_port));
    SIDING_ASSIGN_OR_RETURN(meanwhile->server_,
                            Server::Open(config, meanwhile->local_, [&](grpc::ServerBuilder& builder) {
                              builder.RegisterCallbackGenericService(&meanwhile->service_);
                            }));
    return meanwhile;
  }
  void SetHolder(const LeaseRecord& holder) { service_.SetHolder(holder); }
  // For the active one to read. A storage that cannot be written to has been complained of by that one.
  void Note() { note_.Write().IgnoreError(); }

 private:
  explicit Meanwhile(const ControllerConfig& config)
      : local_(config.limits), note_(JournalOf(config), AddressOf(config)) {}

  LocalIdentities local_;
  AgentContactsFile note_;
  AskTheOther service_{note_};
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Server> server_;
};

// True: a signal to stop has come.
bool Pause(const sigset_t& stop) {
  const timespec look{0, std::chrono::nanoseconds(kLookEvery).count()};
  const int signal = sigtimedwait(&stop, nullptr, &look);
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
                                                      const sigset_t& stop) {
  std::unique_ptr<Meanwhile> meanwhile;
  int64_t holder = 0;  // its epoch
  do {
    const LeaseWatch::Verdict verdict = lease.Look();
    if (verdict == LeaseWatch::Verdict::kFree) {
      if (meanwhile != nullptr) spdlog::warn("{} is gone or silent: taking over", HolderOf(lease.seen()));
      auto journal = TakeOver(config, lease);
      if (journal.ok() || !config.standby || !absl::IsUnavailable(journal.status())) return journal;
      spdlog::warn("not taken over: {}", std::string(journal.status().message()));
      continue;
    }
    if (!config.standby && verdict == LeaseWatch::Verdict::kHeld) {
      return absl::FailedPreconditionError(
          absl::StrCat(JournalOf(config), " is in use by another sidingd: ", HolderOf(lease.seen())));
    }
    if (config.standby && meanwhile == nullptr) {
      SIDING_ASSIGN_OR_RETURN(meanwhile, Meanwhile::Start(config));
    }
    if (meanwhile != nullptr) meanwhile->Note();
    if (std::exchange(holder, lease.seen().epoch) != lease.seen().epoch) {
      if (meanwhile != nullptr) meanwhile->SetHolder(lease.seen());
      spdlog::info("{}: {} has {}", meanwhile != nullptr ? "standing by" : "waiting for a sign of life",
                   HolderOf(lease.seen()), JournalOf(config));
    }
  } while (!Pause(stop));
  return nullptr;
}

}  // namespace siding
