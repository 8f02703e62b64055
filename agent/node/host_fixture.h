// A TaskHost on a folder of its own, real processes included, for tests that need root.
#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/node/local_task_host.h"
#include "agent/os/names.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {

// Keeps the last report of each task; waits for what a test wants to see.
class RecordingSink final : public ReportSink {
 public:
  void Send(v1::FromAgent message) override;
  // The first report of the task, of the cluster that `task` names or of any, for which `wanted` holds, from
  // the last one on. Fails the test and returns the last report if there is none within a minute.
  v1::TaskReport Await(const v1::TaskRef& task, const std::function<bool(const v1::TaskReport&)>& wanted);
  v1::OpResult AwaitResult(int64_t op);
  int progress_messages();
  // What was said of an operation that failed, in any report; empty: it was not said.
  std::string WhyFailed(int64_t op);

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, v1::TaskReport> last_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, v1::OpResult> results_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::string> failed_ ABSL_GUARDED_BY(mutex_);
  int progress_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Of each shim that is started while it lives: SIDING_FAULT (common/fault.h).
class FaultOfShims {
 public:
  explicit FaultOfShims(const std::string& fault) { setenv("SIDING_FAULT", fault.c_str(), 1); }
  ~FaultOfShims() { unsetenv("SIDING_FAULT"); }
  FaultOfShims(const FaultOfShims&) = delete;
  FaultOfShims& operator=(const FaultOfShims&) = delete;
};

class HostTest : public ::testing::Test {
 protected:
  HostTest();
  ~HostTest() override;  // ends the processes of all tasks

  void NeedRoot();
  void NeedCriu();  // both skip the test with the reason
  // The path of a criu that is none of CriuKind::kOurs: the same program, which says another name. Empty:
  // this machine's is none of these either.
  std::string AnotherCriu() const;
  virtual TaskHostOptions Options(const std::string& node = "n1") const;
  void StartHost() { host_ = NewTaskHost(Options(), sink_, SystemClock()).value(); }
  TaskHost& host() { return *host_; }

  v1::JobSpec Job(const std::vector<std::string>& arguments) const;  // of test_job
  // Counts until OpenGate(), then makes one more step and ends. Its options are those of test_job.
  v1::JobSpec Counter(const std::vector<std::string>& options = {}) const;
  v1::JobSpec Somebodys(const std::vector<std::string>& options = {}) const;  // the same, of kUser
  std::string gate() const { return folder_ + "/gate"; }
  void OpenGate() const;
  void CloseGate() const;  // for the restore of one that had ended
  v1::TaskRef Task(int incarnation = 1) const;
  std::string output() const { return folder_ + "/out.1.0"; }
  std::string tasks_folder() const { return folder_ + "/n1/tasks"; }
  // The name of the cluster that n1 takes itself for.
  std::string cluster() const { return NodeCluster(folder_ + "/n1/cluster").Name(); }
  // The number of a command's process in its task.
  int first_process() const { return ProgramNames{cluster(), job_, 0}.FirstProcess(); }

  void Welcome(int64_t cluster);
  void Launch(const v1::JobSpec& spec, int64_t op = 1);
  void Dump(int64_t op, const std::string& checkpoint, bool keep_running = false, int64_t patience_us = 0);
  void Restore(const v1::JobSpec& spec, const std::string& checkpoint, int incarnation = 2, int64_t op = 100);
  void Suspend(int64_t op);
  void Resume(int64_t op);
  void Commit(int64_t op);
  void Abort(int64_t op);
  void Order(const v1::ToAgent& command) { host_->Execute(command); }
  v1::ToAgent Command(int64_t op, int incarnation = 1) const;
  v1::TaskReport AwaitPhase(v1::TaskPhase phase, int incarnation = 1);
  v1::TaskReport AwaitFailure(int64_t op);
  // Launched, running, and past its first `lines` steps.
  void LaunchCounter(const v1::JobSpec& spec, int lines = 3);
  int Lines() const;
  void AwaitLines(int count);
  void AwaitMoreLines() { AwaitLines(Lines() + 2); }
  // What a Counter() has written to its end: each step once, in order.
  void ExpectCompleteOutput() const { ExpectCounted(ReadFile(output()).value_or("")); }
  // The same of a text that begins with `before` and goes on with step `first`.
  static void ExpectCounted(const std::string& text, int first = 1, const std::string& before = "");
  static std::string Steps(int first, int last);  // "1\n2\n..."
  bool DraftsLeft() const;
  // Into an image, and off the node.
  void Vacate(const std::string& checkpoint);

  static constexpr uid_t kUser = 65534;  // whose Somebodys() are

  std::string folder_;
  RecordingSink sink_;
  std::unique_ptr<TaskHost> host_;
  const int64_t job_;  // unlike any other test's, as its temporary folder is
};

}  // namespace siding
