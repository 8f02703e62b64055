#include "agent/node/host_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "agent/criu/criu.h"
#include "agent/node/rates.h"
#include "agent/os/freezer.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/orders.h"
#include "agent/task/task_record.pb.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

std::string Name(const v1::TaskRef& ref) {
  const std::string cluster = ref.cluster() == 0 ? "" : ClusterName(ref.cluster());
  return NameOutside(ToString(TaskIdOf(ref)), cluster);
}

}  // namespace

void RecordingSink::Send(v1::FromAgent message) {
  {
    MutexLock lock(mutex_);
    if (message.has_report()) {
      v1::TaskRef task = message.report().task();
      if (message.report().failed_op() != 0) failed_[message.report().failed_op()] = message.report().error();
      last_[Name(task)] = message.report();
      task.clear_cluster();  // for who does not ask of which it is
      last_[Name(task)] = message.report();
    }
    if (message.has_result()) results_[message.result().op()] = message.result();
    progress_ += message.has_progress();
  }
  changed_.NotifyAll();
}

v1::TaskReport RecordingSink::Await(const v1::TaskRef& task,
                                    const std::function<bool(const v1::TaskReport&)>& wanted) {
  MutexLock lock(mutex_);
  const bool seen = changed_.WaitFor(
      mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return wanted(last_[Name(task)]); });
  EXPECT_TRUE(seen) << "last report: " << last_[Name(task)].DebugString();
  return last_[Name(task)];
}

v1::OpResult RecordingSink::AwaitResult(int64_t op) {
  MutexLock lock(mutex_);
  EXPECT_TRUE(changed_.WaitFor(
      mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return results_.contains(op); }));
  return results_[op];
}

std::string RecordingSink::WhyFailed(int64_t op) {
  MutexLock lock(mutex_);
  const auto failed = failed_.find(op);
  return failed == failed_.end() ? "" : failed->second;
}

int RecordingSink::progress_messages() {
  MutexLock lock(mutex_);
  return progress_;
}

HostTest::HostTest() : job_(getpid() * 1000LL + ::testing::UnitTest::GetInstance()->random_seed() % 1000) {
  char name[] = "/tmp/siding-host-XXXXXX";
  folder_ = mkdtemp(name);
  chmod(folder_.c_str(), 0777);  // for jobs of other users
  // The probe of the disk's speed is another test's matter.
  EXPECT_TRUE(MakeDirectories(folder_ + "/n1").ok());
  Rates rates(folder_ + "/n1/rates.json");
  for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) {
    for (Medium medium : {Medium::kLocal, Medium::kShared, Medium::kGpu})
      rates.Add(medium, transfer, Bytes{1 << 30}, std::chrono::seconds(1));
  }
}

HostTest::~HostTest() {
  host_.reset();
  const Freezer freezer = Freezer::Detect("n1");
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(tasks_folder(), error)) {
    auto record = ReadJsonFile<agent::TaskRecord>(entry.path().string() + "/task.json");
    const pid_t init =
        record.ok() && IsAlive(record->init().pid(), record->init().start_time()) ? record->init().pid() : 0;
    const std::string cgroup =
        record.ok() ? NameOutside(ToString(TaskIdOf(record->report().task())), record->cluster())
                    : NameOutside(entry.path().filename(), cluster());
    freezer.KillAll(cgroup, init);
    freezer.RemoveCgroup(cgroup).IgnoreError();
  }
  const std::string of = cluster();
  // The shims still write down what they saw of the end.
  const auto removed = [&] {
    std::filesystem::remove_all(folder_, error);
    return !std::filesystem::exists(folder_);
  };
  EXPECT_TRUE(PollUntil(removed, kPatience));
  for (const uid_t uid : {getuid(), kUser})
    std::filesystem::remove_all(ProgramNames{of, job_, 0}.Tmpdir(uid), error);
}

void HostTest::NeedRoot() {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: tasks get a pid namespace of their own";
}

std::string HostTest::AnotherCriu() const {
  const std::string ours = FindCriu("").value(), another = folder_ + "/another-criu";
  if (NewCriu(ours)->Check()->kind() != CriuKind::kOurs) return "";
  std::string program = ReadFile(ours).value();
  for (size_t at = 0; (at = program.find("files-as-user", at)) != std::string::npos; ++at) program[at] = 'F';
  EXPECT_TRUE(WriteFileAtomically(another, program, 0755).ok());
  EXPECT_EQ(NewCriu(another)->Check()->kind(), CriuKind::kAny);
  return another;
}

void HostTest::NeedCriu() {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  auto path = FindCriu("");
  if (!path.ok()) GTEST_SKIP() << path.status().message();
  auto version = NewCriu(*path)->Check();
  if (!version.ok()) GTEST_SKIP() << *path << ": " << version.status().message();
}

TaskHostOptions HostTest::Options(const std::string& node) const {
  TaskHostOptions options;
  options.node = node;
  options.state_dir = folder_ + "/" + node;
  options.shared_dir = folder_ + "/shared";
  options.shim_path = SIDING_TEST_SHIM;
  options.init_path = SIDING_TEST_INIT;
  options.capacity.set_slots(4);
  return options;
}

v1::JobSpec HostTest::Job(const std::vector<std::string>& arguments) const {
  v1::JobSpec spec;
  spec.set_name("counter");
  spec.set_nodes(1);
  spec.set_workdir(folder_);
  spec.set_output(folder_ + "/out.1.%r");
  spec.add_command(SIDING_TEST_JOB);
  for (const std::string& argument : arguments) spec.add_command(argument);
  return spec;
}

v1::JobSpec HostTest::Counter(const std::vector<std::string>& options) const {
  std::vector<std::string> arguments = {"-e", gate()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return Job(arguments);
}

v1::JobSpec HostTest::Somebodys(const std::vector<std::string>& options) const {
  v1::JobSpec spec = Counter(options);
  spec.set_uid(kUser);
  spec.set_gid(kUser);
  return spec;
}

void HostTest::OpenGate() const { EXPECT_TRUE(WriteFileAtomically(gate(), "").ok()); }

void HostTest::CloseGate() const { std::filesystem::remove(gate()); }

v1::TaskRef HostTest::Task(int incarnation) const {
  v1::TaskRef ref;
  ref.set_job(job_);
  ref.set_incarnation(incarnation);
  return ref;
}

v1::ToAgent HostTest::Command(int64_t op, int incarnation) const {
  v1::ToAgent command;
  command.set_op(op);
  *command.mutable_task() = Task(incarnation);
  return command;
}

void HostTest::Welcome(int64_t cluster) {
  v1::ToAgent command;
  command.mutable_welcome()->set_cluster(cluster);
  Order(command);
}

void HostTest::Launch(const v1::JobSpec& spec, int64_t op) {
  v1::ToAgent command = Command(op);
  *command.mutable_launch()->mutable_spec() = spec;
  Order(command);
}

void HostTest::Dump(int64_t op, const std::string& checkpoint, bool keep_running, int64_t patience_us) {
  v1::ToAgent command = Command(op);
  v1::Dump& dump = *command.mutable_dump();
  dump.set_checkpoint(checkpoint);
  dump.set_tier(v1::SHARED);
  dump.set_keep_running(keep_running);
  dump.set_patience_us(patience_us);
  Order(command);
}

void HostTest::Restore(const v1::JobSpec& spec, const std::string& checkpoint, int incarnation, int64_t op) {
  v1::ToAgent command = Command(op, incarnation);
  v1::Restore& restore = *command.mutable_restore();
  *restore.mutable_spec() = spec;
  restore.set_checkpoint(checkpoint);
  restore.set_tier(v1::SHARED);
  restore.set_image_incarnation(incarnation - 1);
  Order(command);
}

void HostTest::Vacate(const std::string& checkpoint) {
  Dump(2, checkpoint);
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitPhase(v1::CHECKPOINTED);
}

void HostTest::Suspend(int64_t op) {
  v1::ToAgent command = Command(op);
  command.mutable_suspend();
  Order(command);
}

void HostTest::Resume(int64_t op) {
  v1::ToAgent command = Command(op);
  command.mutable_resume();
  Order(command);
}

void HostTest::Commit(int64_t op) {
  v1::ToAgent command = Command(op);
  command.mutable_commit();
  Order(command);
}

void HostTest::Abort(int64_t op) {
  v1::ToAgent command = Command(op);
  command.mutable_abort();
  Order(command);
}

v1::TaskReport HostTest::AwaitPhase(v1::TaskPhase phase, int incarnation) {
  return sink_.Await(Task(incarnation), [&](const auto& report) { return report.phase() == phase; });
}

v1::TaskReport HostTest::AwaitFailure(int64_t op) {
  return sink_.Await(Task(), [&](const auto& r) { return r.failed_op() == op && r.phase() == v1::RUNNING; });
}

void HostTest::LaunchCounter(const v1::JobSpec& spec, int lines) {
  Launch(spec);
  AwaitPhase(v1::RUNNING);
  AwaitLines(lines);
}

int HostTest::Lines() const {
  auto text = ReadFile(output());
  return text.ok() ? static_cast<int>(std::count(text->begin(), text->end(), '\n')) : 0;
}

void HostTest::AwaitLines(int count) {
  EXPECT_TRUE(PollUntil([&] { return Lines() >= count; }, kPatience)) << Lines() << " lines";
}

void HostTest::ExpectCounted(const std::string& text, int first, const std::string& before) {
  const auto lines = [](const std::string& of) {
    return static_cast<int>(std::count(of.begin(), of.end(), '\n'));
  };
  const int steps = lines(text) - lines(before);
  EXPECT_GT(steps, 0);
  EXPECT_EQ(text, before + Steps(first, first + steps - 1));
}

std::string HostTest::Steps(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) text += std::to_string(i) + "\n";
  return text;
}

bool HostTest::DraftsLeft() const {
  std::error_code error;
  const std::string staging = folder_ + "/shared/staging";
  return std::filesystem::exists(staging, error) && !std::filesystem::is_empty(staging, error);
}

}  // namespace siding
