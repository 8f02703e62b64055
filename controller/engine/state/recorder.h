// Records decisions as events: applied to the state at once, and written to the journal before any order
// follows from them.
//
// While the journal cannot be written (the disk is full, say) nothing is decided. What was decided and not
// recorded is taken back, so that nothing is shown or done that a restart would not know. Agents and cluster
// managers report again what was observed meanwhile.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "controller/engine/state/agenda.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/event_log.h"
#include "controller/engine/state/node_accounts.h"
#include "controller/engine/state/pending_starts.h"
#include "controller/journal/journal.h"

namespace siding {

// The only one that changes the durable state. Not thread-safe, but for events(): used under the engine's
// lock. What is passed in must outlive it.
class Recorder {
 public:
  Recorder(ClusterState& state, Journal& journal, const Clock& clock, NodeAccounts& accounts,
           PendingStarts& starts, Agenda& agenda)
      : state_(state),
        journal_(journal),
        clock_(clock),
        accounts_(accounts),
        starts_(starts),
        agenda_(agenda),
        events_(journal) {}

  // The state as the journal has it.
  absl::Status Replay();

  void Record(JobId job, EventBody body);
  // A step of the job through the lifecycle table. `job` must not be a copy: it changes.
  void Move(const JobRecord& job, JobMoved move);

  // Makes durable what was recorded since the last call. `acts`: orders that follow from earlier decisions
  // are to go out; they must not if another controller has taken the journal over. An error: the state is
  // what the journal has, and an outage has begun.
  absl::Status Flush(bool acts);

  bool healthy() const { return health_.ok(); }
  // kUnavailable during an outage: nothing may be decided.
  absl::Status Ready() const;
  // Tries to write, if it is time to. True: the outage is over, and everything is to be looked at.
  bool EndOutage();

  // See Journal.
  absl::StatusOr<bool> Compact() { return journal_.Compact(); }
  int64_t restored() const { return journal_.restored(); }
  int64_t cluster() const { return journal_.cluster(); }
  // Durable events only.
  const EventLog& events() const { return events_; }

 private:
  void BeginOutage(const absl::Status& status);
  void TakeBack();

  ClusterState& state_;
  Journal& journal_;
  const Clock& clock_;
  NodeAccounts& accounts_;
  PendingStarts& starts_;
  Agenda& agenda_;
  EventLog events_;

  std::vector<Event> unflushed_;
  absl::Status health_;  // not OK during an outage
  Time try_at_;          // when it is tried again, and how long after the last time
  Duration try_after_{0};
};

}  // namespace siding
