// What an order changes in a task's record before it is carried out. Pure: the caller writes it.
#pragma once

#include "agent/task/task_record.pb.h"
#include "common/ids.h"
#include "siding/v1/agent.pb.h"

namespace siding {

// The task that an order or a report is of.
TaskId TaskIdOf(const v1::TaskRef& ref);

// Each is for the order that it is named after, and is false if there is nothing to do: it has been carried
// out, has failed, or makes no sense in the task's phase. Then the record stays as it is.
bool TakeStart(agent::TaskRecord& record, const v1::ToAgent& order);  // Launch, Restore
bool TakeSuspend(agent::TaskRecord& record, const v1::ToAgent& order);
bool TakeDump(agent::TaskRecord& record, const v1::ToAgent& order);
// The order is to dump the task again for a checkpoint for which its peers have been dumped, and may have run
// on. Controllers of an earlier version give it.
bool IsOfLaterMoment(const agent::DumpRecord& dump, const v1::ToAgent& order);
bool TakeSave(agent::TaskRecord& record, const v1::ToAgent& order);

}  // namespace siding
