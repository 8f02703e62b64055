// What siding asks of Slurm.
//
// Calls block until slurmctld has answered, which takes milliseconds, or has not for some ten seconds; so not
// on the engine's thread. Not thread-safe. Errors name the job or reservation:
//   kUnavailable         slurmctld does not answer
//   kNotFound            there is no such job or reservation
//   kPermissionDenied    Slurm does not let this process's user do that
//   kFailedPrecondition  not in the state that the job is in; Slurm's words say why
//   kInternal            Slurm answered what we do not understand, or failed
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/platform/slurm/client/settings.h"
#include "controller/platform/slurm/client/values.h"

namespace siding::slurm {

enum class Verb : uint8_t {
  kSuspend,
  kResume,
};
// scontrol's word: "suspend", "resume".
std::string ToString(Verb verb);

class Client {
 public:
  virtual ~Client() = default;

  // "libslurm 22.05.8" or "command-line tools": for the log.
  virtual std::string Description() const = 0;

  // All that slurmctld remembers, ended jobs included, in order of their numbers (names). A list is shared
  // and never changes; the same pointer again means that nothing has changed since.
  template <class T>
  using List = std::shared_ptr<const std::vector<T>>;
  virtual absl::StatusOr<List<QueueJob>> Jobs() = 0;
  virtual absl::StatusOr<List<QueueNode>> Nodes() = 0;
  virtual absl::StatusOr<List<Partition>> Partitions() = 0;
  virtual absl::StatusOr<List<Reservation>> Reservations() = 0;

  // As they are in force. Not cached.
  virtual absl::StatusOr<Settings> LoadSettings() = 0;

  virtual absl::Status Do(JobNumber job, Verb verb) = 0;
  virtual absl::Status Update(JobNumber job, const JobChange& change) = 0;

  // Keeps the nodes for these users' jobs that name the reservation. Jobs that run there go on, whoever's
  // they are; its own may run longer than it lasts. Times count in whole seconds.
  virtual absl::Status CreateReservation(const Reservation& reservation) = 0;
  // kFailedPrecondition while a job that waits or runs names it.
  virtual absl::Status DeleteReservation(const std::string& name) = 0;
};

}  // namespace siding::slurm
