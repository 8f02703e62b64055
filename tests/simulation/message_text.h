// Messages in a few words, for the trace.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "siding/v1/agent.pb.h"

namespace siding::simulation {

inline std::string Words(const v1::TaskRef& task) {
  return absl::StrCat(task.job(), ".", task.incarnation(), ".", task.rank());
}

inline std::string Words(const v1::TaskReport& report) {
  std::string text = absl::StrCat("task ", Words(report.task()), " ", v1::TaskPhase_Name(report.phase()));
  if (report.op() != 0) absl::StrAppend(&text, " op ", report.op());
  if (report.failed_op() != 0) absl::StrAppend(&text, " failed ", report.failed_op());
  if (report.committed_op() != 0) absl::StrAppend(&text, " committed ", report.committed_op());
  if (report.phase() == v1::EXITED)
    absl::StrAppend(&text, " code ", report.exit_code(), " signal ", report.exit_signal());
  if (report.barrier() != v1::BARRIER_NONE)
    absl::StrAppend(&text, " at ", v1::DumpBarrier_Name(report.barrier()));
  if (report.runs_on()) text += " runs on";
  if (!report.error().empty()) absl::StrAppend(&text, " (", report.error(), ")");
  return text;
}

inline std::string Words(const v1::FromAgent& message) {
  switch (message.what_case()) {
    case v1::FromAgent::kReport:
      return Words(message.report());
    case v1::FromAgent::kProgress:
      return absl::StrCat("task ", Words(message.progress().task()), " is half dumped");
    case v1::FromAgent::kResult:
      return absl::StrCat("answer to ", message.result().op(), ": ", message.result().code());
    case v1::FromAgent::kHeartbeat: {
      std::string text = "heartbeat:";
      for (const v1::TaskReport& report : message.heartbeat().tasks())
        absl::StrAppend(&text, " ", Words(report), ";");
      return text;
    }
    case v1::FromAgent::kHello: {
      std::string text = absl::StrCat("hello from ", message.hello().agent(), ":");
      for (const v1::TaskReport& report : message.hello().tasks())
        absl::StrAppend(&text, " ", Words(report), ";");
      return text;
    }
    default:
      return "nothing";
  }
}

inline std::string Words(const v1::ToAgent& command) {
  const std::string task = absl::StrCat(" task ", Words(command.task()), " op ", command.op());
  switch (command.what_case()) {
    case v1::ToAgent::kLaunch:
      return "launch" + task + (command.launch().restart_after_save() ? " after its own save" : "");
    case v1::ToAgent::kRestore:
      return absl::StrCat("restore", task, " from ", command.restore().checkpoint());
    case v1::ToAgent::kDump:
      return absl::StrCat("dump", task, " as ", command.dump().checkpoint(),
                          command.dump().keep_running() ? " and go on" : "",
                          command.dump().together() ? " together" : "");
    case v1::ToAgent::kPassBarrier:
      return absl::StrCat("pass", task, " ", v1::DumpBarrier_Name(command.pass_barrier().barrier()));
    case v1::ToAgent::kJoinNetwork:
      return absl::StrCat("join", task, " to ", command.join_network().ranks_size());
    case v1::ToAgent::kAllJoined:
      return "all-joined" + task;
    case v1::ToAgent::kCommit:
      return "commit" + task;
    case v1::ToAgent::kAbort:
      return "abort" + task;
    case v1::ToAgent::kSuspend:
      return "suspend" + task;
    case v1::ToAgent::kResume:
      return "resume" + task;
    case v1::ToAgent::kSave:
      return "save" + task;
    case v1::ToAgent::kKill:
      return "kill" + task;
    case v1::ToAgent::kForget:
      return "forget" + task;
    case v1::ToAgent::kVerify:
      return absl::StrCat("verify ", command.verify().checkpoint(), " rank ", command.verify().rank());
    case v1::ToAgent::kDelete:
      return absl::StrCat("delete ", command.delete_().checkpoint(), " rank ", command.delete_().rank());
    default:
      return "nothing";
  }
}

}  // namespace siding::simulation
