#include "agent/task/orders.h"

#include <algorithm>

namespace siding {
namespace {

// An order of that number has failed, or has been carried out.
bool IsBehind(const agent::TaskRecord& record, int64_t op) {
  return op <= std::max(record.report().failed_op(), record.done_op());
}

void ForgetFailure(v1::TaskReport& report) {
  report.clear_failed_op();
  report.clear_error();
}

}  // namespace

TaskId TaskIdOf(const v1::TaskRef& ref) { return {JobId(ref.job()), ref.incarnation(), ref.rank()}; }

bool TakeStart(agent::TaskRecord& record, const v1::ToAgent& order) {
  v1::TaskReport& report = *record.mutable_report();
  // The task is not new: it has been launched already.
  if (report.phase() != v1::TASK_PHASE_UNSPECIFIED) return false;
  const bool restore = order.has_restore();
  *record.mutable_spec() = restore ? order.restore().spec() : order.launch().spec();
  record.set_restored(restore);
  if (restore) {
    report.set_checkpoint(order.restore().checkpoint());
    record.mutable_base()->set_checkpoint(order.restore().checkpoint());
    record.mutable_base()->set_tier(order.restore().tier());
  }
  // The controller did not start it: this is how it learns what the job asked for.
  if (record.externally_managed()) *report.mutable_spec() = record.spec();
  return true;
}

bool TakeSuspend(agent::TaskRecord& record, const v1::ToAgent& order) {
  v1::TaskReport& report = *record.mutable_report();
  if (report.phase() != v1::RUNNING || order.op() == report.failed_op()) return false;
  ForgetFailure(report);
  record.set_frozen(true);
  return true;
}

bool TakeDump(agent::TaskRecord& record, const v1::ToAgent& order) {
  v1::TaskReport& report = *record.mutable_report();
  if (report.phase() != v1::RUNNING && report.phase() != v1::SUSPENDED) return false;
  if (IsBehind(record, order.op())) return false;
  ForgetFailure(report);
  report.clear_stopped_us();
  report.clear_waited_us();
  agent::DumpRecord& dump = *record.mutable_dump();
  dump.Clear();
  dump.set_op(order.op());
  dump.set_checkpoint(order.dump().checkpoint());
  dump.set_tier(order.dump().tier());
  dump.set_keep_running(order.dump().keep_running());
  dump.set_was_frozen(report.phase() == v1::SUSPENDED);
  return true;
}

bool IsOfLaterMoment(const agent::DumpRecord& dump, const v1::ToAgent& order) {
  return dump.met() && order.op() > dump.op() && dump.checkpoint() == order.dump().checkpoint();
}

bool TakeSave(agent::TaskRecord& record, const v1::ToAgent& order) {
  v1::TaskReport& report = *record.mutable_report();
  if (report.phase() != v1::RUNNING || IsBehind(record, order.op())) return false;
  ForgetFailure(report);
  return true;
}

}  // namespace siding
