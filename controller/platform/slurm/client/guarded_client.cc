#include "controller/platform/slurm/client/guarded_client.h"

#include <utility>

#include "common/status.h"

namespace siding::slurm {
namespace {

class GuardedClient final : public Client {
 public:
  GuardedClient(std::unique_ptr<Client> client, std::function<absl::Status()> may_act)
      : client_(std::move(client)), may_act_(std::move(may_act)) {}

  std::string Description() const override { return client_->Description(); }
  absl::StatusOr<List<QueueJob>> Jobs() override { return client_->Jobs(); }
  absl::StatusOr<List<QueueNode>> Nodes() override { return client_->Nodes(); }
  absl::StatusOr<List<Partition>> Partitions() override { return client_->Partitions(); }
  absl::StatusOr<List<Reservation>> Reservations() override { return client_->Reservations(); }

  absl::StatusOr<Settings> LoadSettings() override { return client_->LoadSettings(); }

  absl::Status Do(JobNumber job, Verb verb) override {
    SIDING_RETURN_IF_ERROR(may_act_());
    return client_->Do(job, verb);
  }
  absl::Status Update(JobNumber job, const JobChange& change) override {
    SIDING_RETURN_IF_ERROR(may_act_());
    return client_->Update(job, change);
  }
  absl::Status CreateReservation(const Reservation& reservation) override {
    SIDING_RETURN_IF_ERROR(may_act_());
    return client_->CreateReservation(reservation);
  }
  absl::Status DeleteReservation(const std::string& name) override {
    SIDING_RETURN_IF_ERROR(may_act_());
    return client_->DeleteReservation(name);
  }

 private:
  const std::unique_ptr<Client> client_;
  const std::function<absl::Status()> may_act_;
};

}  // namespace

std::unique_ptr<Client> NewGuardedClient(std::unique_ptr<Client> client,
                                         std::function<absl::Status()> may_act) {
  return std::make_unique<GuardedClient>(std::move(client), std::move(may_act));
}

}  // namespace siding::slurm
