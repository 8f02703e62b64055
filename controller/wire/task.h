// What messages between controller and agents say of tasks. Thread-safe (pure functions).
#pragma once

#include "common/ids.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// The task that is named, or that a report is of.
TaskId IdOf(const v1::TaskRef& ref);
TaskId IdOf(const v1::TaskReport& report);
v1::TaskRef RefOf(const TaskId& id);
// The processes are there (or about to be).
bool IsLive(v1::TaskPhase phase);
// The processes are gone.
bool IsGone(v1::TaskPhase phase);

}  // namespace siding
