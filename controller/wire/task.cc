#include "controller/wire/task.h"

namespace siding {

TaskId IdOf(const v1::TaskRef& ref) { return {JobId(ref.job()), ref.incarnation(), ref.rank()}; }
TaskId IdOf(const v1::TaskReport& report) { return IdOf(report.task()); }
v1::TaskRef RefOf(const TaskId& id) {
  v1::TaskRef ref;
  ref.set_job(id.job.value());
  ref.set_incarnation(id.incarnation);
  ref.set_rank(id.rank);
  return ref;
}

bool IsLive(v1::TaskPhase phase) {
  switch (phase) {
    case v1::LAUNCHING:
    case v1::RUNNING:
    case v1::SUSPENDED:
    case v1::DUMPING:
    case v1::PREPARED:
    case v1::RESTORING:
      return true;
    default:
      return false;
  }
}

bool IsGone(v1::TaskPhase phase) { return phase != v1::TASK_PHASE_UNSPECIFIED && !IsLive(phase); }

}  // namespace siding
