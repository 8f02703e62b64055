// When those that wait will have nodes: the engine's state as a value, for planner/return_forecast.h. Nothing
// is decided by it; it is made when somebody asks, and worked out without the engine's lock.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "controller/engine/decide/admission.h"
#include "controller/engine/decide/batch_queue.h"
#include "controller/engine/decide/planning.h"
#include "controller/engine/decide/recovery.h"
#include "controller/engine/decide/way_backs.h"
#include "controller/engine/state/context.h"
#include "planner/return_forecast.h"

namespace siding {

struct ForecastTask {
  ReturnBasis basis;
  std::vector<Waiting> queue;   // siding's own, in its order
  int headroom = 0;             // nodes that it leaves free
  std::map<JobId, Back> known;  // of those that are not in `basis`: why they have no time
};

// Of those that made way, and of those in the queue, so many are looked at, in their order: with ten thousand
// of them each moment would take too long.
inline constexpr size_t kMostForecast = 500;

// Of each job that waits or made way. Pure.
std::map<JobId, Back> MakeForecast(ForecastTask task);

// Used under the engine's lock.
class ReturnForecasts {
 public:
  ReturnForecasts(const Context& c, const Recovery& recovery, const Planning& planning,
                  const Admission& admission, const BatchQueue& batch, const WayBacks& way_backs)
      : state_(c.state),
        policy_(c.policy),
        clock_(c.clock),
        cluster_(c.cluster),
        accounts_(c.accounts),
        recovery_(recovery),
        planning_(planning),
        admission_(admission),
        batch_(batch),
        way_backs_(way_backs) {}

  ForecastTask Task() const;

 private:
  void AddFrozen(const JobRecord& job, ForecastTask& task) const;
  void AddHolder(const JobRecord& job, ForecastTask& task) const;
  void AddReservation(const JobRecord& request, ForecastTask& task) const;
  void AddWaiter(const JobRecord& job, ForecastTask& task) const;
  void AddToQueue(const JobRecord& job, Waiter waiter, ForecastTask& task) const;
  std::optional<Back> WhyNever(const JobRecord& job) const;
  std::optional<Known<Time>> NotBefore(const JobRecord& job) const;
  Known<Time> EndOf(const JobRecord& job) const;
  Known<Duration> StayOf(const JobRecord& job) const;
  Duration RanBefore(const JobRecord& job) const;
  bool IsEndedByWalltime(const JobRecord& job) const;

  const ClusterState& state_;
  const Policy& policy_;
  const Clock& clock_;
  const ClusterView& cluster_;
  const NodeAccounts& accounts_;
  const Recovery& recovery_;
  const Planning& planning_;
  const Admission& admission_;
  const BatchQueue& batch_;
  const WayBacks& way_backs_;
};

}  // namespace siding
