// What the engine's parts have in common, handed to their constructors. Each part keeps only the references
// that it uses, so its header says what it depends on.
#pragma once

#include "common/clock.h"
#include "common/limited_log.h"
#include "controller/engine/state/agenda.h"
#include "controller/engine/state/cluster_state.h"
#include "controller/engine/state/cluster_view.h"
#include "controller/engine/state/manager_view.h"
#include "controller/engine/state/node_accounts.h"
#include "controller/engine/state/pending_starts.h"
#include "controller/engine/state/recorder.h"
#include "controller/engine/state/retention.h"
#include "controller/engine/state/startup.h"
#include "controller/engine/state/tier_room.h"
#include "controller/platform/platform.h"
#include "model/policy.h"

namespace siding {

// Everything lives as long as the engine, and is used under its lock.
struct Context {
  const ClusterState& state;
  ObservedState& observed;  // of `state`; written by the parts that receive reports
  const Policy& policy;
  const Retention& retention;
  const Clock& clock;
  Platform& platform;
  StartUp& startup;
  Agenda& agenda;
  const ClusterView& cluster;
  const ManagerView& manager;
  const TierRoom& tiers;
  NodeAccounts& accounts;
  PendingStarts& starts;
  Recorder& recorder;
  LimitedLog& limited_log;  // of what users and nodes can cause as often as they like; with a lock of its own
};

}  // namespace siding
