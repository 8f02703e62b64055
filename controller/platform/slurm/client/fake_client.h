// A Slurm for tests that does as it is told, at once: what a job is told shows in the next list.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/platform/slurm/client/client.h"

namespace siding::slurm {

class FakeClient final : public Client {
 public:
  // What there is. Set and read by tests between calls.
  std::map<JobNumber, QueueJob> jobs;
  std::map<NodeId, QueueNode> nodes;
  std::map<std::string, Partition> partitions;
  std::map<std::string, Reservation> reservations;
  Settings settings;
  absl::Status health;     // not OK: every call fails with it
  int orders = 0;          // calls that were to change something, and did
  bool takes_nice = true;  // false: as of jobs whose priority an administrator has set
  // By priority/multifactor: the sum from which a job's nice value is taken. No less than 1 is shown.
  std::map<JobNumber, int64_t> factors;

  QueueJob& Add(uint32_t number, JobPhase phase) {
    QueueJob& job = jobs[JobNumber(number)];
    job.id = JobNumber(number);
    job.phase = phase;
    job.priority = 1;
    return job;
  }

  std::string Description() const override { return "a fake"; }
  absl::StatusOr<List<QueueJob>> Jobs() override { return Load(jobs, last_jobs_); }
  absl::StatusOr<List<QueueNode>> Nodes() override { return Load(nodes, last_nodes_); }
  absl::StatusOr<List<Partition>> Partitions() override { return Load(partitions, last_partitions_); }
  absl::StatusOr<List<Reservation>> Reservations() override { return Load(reservations, last_reservations_); }

  absl::StatusOr<Settings> LoadSettings() override {
    if (!health.ok()) return health;
    return settings;
  }

  absl::Status Do(JobNumber number, Verb verb) override {
    if (!health.ok()) return health;
    const auto found = jobs.find(number);
    if (found == jobs.end()) return NoSuch(number);
    found->second.phase = verb == Verb::kSuspend ? JobPhase::kSuspended : JobPhase::kRunning;
    ++orders;
    return absl::OkStatus();
  }

  absl::Status Update(JobNumber number, const JobChange& change) override {
    if (!health.ok()) return health;
    const auto found = jobs.find(number);
    if (found == jobs.end()) return NoSuch(number);
    QueueJob& job = found->second;
    if (change.only_on) job.only_on = *change.only_on;
    if (change.reservation) job.reservation = *change.reservation;
    if (change.admin_comment) job.admin_comment = *change.admin_comment;
    if (change.comment) job.comment = *change.comment;
    if (change.nice && takes_nice) {
      const auto sum = factors.find(number);
      job.priority = static_cast<uint32_t>(sum == factors.end()
                                               ? std::max<int64_t>(job.priority + job.nice - *change.nice, 2)
                                               : std::max<int64_t>(sum->second - *change.nice, 1));
      job.nice = *change.nice;
    }
    ++orders;
    return absl::OkStatus();
  }

  absl::Status CreateReservation(const Reservation& reservation) override {
    if (!health.ok()) return health;
    if (!reservations.emplace(reservation.name, reservation).second)
      return absl::AlreadyExistsError("reservation " + reservation.name);
    ++orders;
    return absl::OkStatus();
  }

  absl::Status DeleteReservation(const std::string& name) override {
    if (!health.ok()) return health;
    for (const auto& [number, job] : jobs) {
      if (job.reservation == name && job.phase != JobPhase::kEnded)
        return absl::FailedPreconditionError("reservation " + name + ": Requested reservation is in use");
    }
    if (reservations.erase(name) == 0) return absl::NotFoundError("reservation " + name);
    ++orders;
    return absl::OkStatus();
  }

 private:
  static absl::Status NoSuch(JobNumber number) {
    return absl::NotFoundError("job " + std::to_string(number.value()) + ": Invalid job id specified");
  }

  template <class Key, class T>
  absl::StatusOr<List<T>> Load(const std::map<Key, T>& all, List<T>& last) {
    if (!health.ok()) return health;
    std::vector<T> values;
    for (const auto& [key, value] : all) values.push_back(value);
    if (last == nullptr || *last != values) last = std::make_shared<const std::vector<T>>(std::move(values));
    return last;
  }

  List<QueueJob> last_jobs_;
  List<QueueNode> last_nodes_;
  List<Partition> last_partitions_;
  List<Reservation> last_reservations_;
};

}  // namespace siding::slurm
