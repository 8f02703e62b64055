// Pods as tasks, with siding-runc as it is and real processes in a container that a script makes in place of
// runc: a shell with a child that counts. What the test does beside giving orders, a kubelet would do.
#include "agent/node/pod_task.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "common/run_program.h"

namespace siding {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Beside the containers' folders in its --root: `calls`; `fail-VERB`, with what it is to say; `hold-VERB`, a
// named pipe at which it waits for a line, and `in-VERB` says that it is there; `hang-VERB`: it never ends,
// nor does the criu that it starts, whose number is in `criu`; `late-VERB`: it fails when it has done it.
constexpr char kRunc[] = R"(#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in --root) root=$2; shift 2;; --log*) shift 2;; -*) shift;; *) break;; esac
done
verb=$1; shift
while [ $# -gt 1 ]; do
  case $1 in
    --bundle) bundle=$2; shift 2;; --pid-file) pid_file=$2; shift 2;; --image-path) image=$2; shift 2;;
    --work-path) work=$2; shift 2;; *) shift;;
  esac
done
id=$1; here=$root/$id
mkdir -p "$root"; echo "$verb $id" >> "$root/calls"
case $verb in
  create|restore) ;;
  *) [ -d "$here" ] || { echo "container does not exist" >&2; exit 1; }; pid=$(cat "$here/pid");;
esac
: > "$root/in-$verb"
if [ -e "$root/hang-$verb" ]; then
  setsid sh -c 'trap "" TERM INT HUP; echo $$ > "$0/criu"; exec sleep 1000000' "$root" > /dev/null 2>&1 &
  wait
fi
[ -p "$root/hold-$verb" ] && read -r line < "$root/hold-$verb"
if [ -e "$root/fail-$verb" ]; then
  cat "$root/fail-$verb" >&2
  [ -n "$work" ] && sed 's/^/(00.1) Error (criu\/x.c:1): /' "$root/fail-$verb" | tee "$work/dump.log" > "$work/restore.log"
  exit 1
fi
case $verb in
  create|restore)
    if [ $verb = restore ]; then cat "$image/pages-1.img" > "$root/restored" || exit 1; fi
    mkdir "$here" || exit 1
    mkfifo "$here/begun"
    job=$(cat "$root/job" 2> /dev/null || echo 1000000)
    setsid sh -c 'echo > "$1"; "$0" $2 & wait' JOB "$here/begun" "$job" < /dev/null >> OUTPUT 2>&1 &
    read -r line < "$here/begun"  # it has a session of its own
    echo $! > "$here/pid"; printf $! > "$pid_file";;
  state)
    status=running
    [ -e "$here/paused" ] && status=paused
    kill -0 "$pid" 2> /dev/null || { status=stopped; pid=0; }
    echo "{\"id\": \"$id\", \"pid\": $pid, \"status\": \"$status\"}";;
  pause)
    kill -s STOP -- "-$pid" || exit 1
    while ps -o stat= -s "$pid" | grep -q '^[^TZX]'; do :; done  # as the kernel's freezer, not before all stand
    : > "$here/paused";;
  resume) rm "$here/paused" && kill -s CONT -- "-$pid";;
  checkpoint)
    [ -e "$here/paused" ] || { echo "it is not paused" >&2; exit 1; }
    echo "the state of $id" > "$image/pages-1.img";;
  start) : > "$here/started";;
  delete) rm -r "$here";;
esac
[ ! -e "$root/late-$verb" ] || { cat "$root/late-$verb" >&2; exit 1; }
)";

class PodTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (IsSkipped()) return;
    ASSERT_TRUE(MakeDirectories(folder_ + "/bin").ok());
    ASSERT_TRUE(MakeDirectories(root()).ok());
    ASSERT_TRUE(WriteFileAtomically(
                    folder_ + "/bin/runc",
                    absl::StrReplaceAll(kRunc, {{"JOB", Job({}).command(0)}, {"OUTPUT", output()}}), 0755)
                    .ok());
    std::filesystem::copy_file(SIDING_TEST_RUNC, folder_ + "/bin/siding-runc");
    SetPatience(kPatience);
    Begin();
  }
  // How long siding-runc waits for the agent's word. Where it is to give up after an answer, the answer has
  // to come within it.
  static constexpr std::chrono::seconds kUntilItGivesUp{10}, kAtOnce{1};
  void SetPatience(std::chrono::seconds patience) const {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/bin/siding-runc.conf",
                                    absl::StrCat("runc ", folder_, "/bin/runc\nsocket ", socket(),
                                                 "\npatience ", patience.count(), "\n"))
                    .ok());
  }
  virtual void Begin() { StartHost(); }
  void TearDown() override {
    host_.reset();
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root(), error)) {
      const pid_t init = entry.is_directory() ? InitOf(entry.path().filename()) : 0;
      if (init > 0) kill(-init, SIGKILL);
    }
  }
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = HostTest::Options(node);
    options.pods_socket = socket();
    options.runc = folder_ + "/bin/runc";
    options.runc_patience.undo = std::chrono::milliseconds(100);
    options.cluster_manager = true;
    return options;
  }
  std::string root() const { return folder_ + "/containers"; }
  std::string socket() const { return folder_ + "/pods.sock"; }

  // ---- What a controller does. ----
  static std::string Uid(int incarnation = 1) { return absl::StrCat("uid-", incarnation); }
  v1::ToAgent PodCommand(int64_t op, int incarnation) const {
    v1::ToAgent command = Command(op, incarnation);
    command.mutable_pod()->set_space("a-space");
    command.mutable_pod()->set_name("a-pod");
    command.mutable_pod()->set_uid(Uid(incarnation));
    return command;
  }
  void LaunchPod(int64_t op = 1) {
    v1::ToAgent command = PodCommand(op, 1);
    command.mutable_launch()->mutable_spec()->set_name("pod");
    Order(command);
  }
  // `pod`: the incarnation whose pod it is.
  void RestorePod(const std::string& checkpoint, int incarnation = 2, int pod = 2) {
    v1::ToAgent command = PodCommand(100 * incarnation, incarnation);
    command.mutable_pod()->set_uid(Uid(pod));
    command.mutable_restore()->mutable_spec()->set_name("pod");
    command.mutable_restore()->set_checkpoint(checkpoint);
    command.mutable_restore()->set_tier(v1::SHARED);
    Order(command);
  }
  void Gone(std::optional<int> exit_code = std::nullopt, int incarnation = 1) {
    v1::ToAgent command = Command(0, incarnation);
    command.mutable_pod_gone();
    if (exit_code) command.mutable_pod_gone()->set_exit_code(*exit_code);
    Order(command);
  }
  void Kill(int64_t op) {
    v1::ToAgent command = Command(op);
    command.mutable_kill()->set_grace_us(1);
    Order(command);
  }
  v1::TaskReport AwaitLeaves() {
    return sink_.Await(Task(), [](const v1::TaskReport& report) { return report.leaves(); });
  }

  // ---- What a container runtime does. ----
  std::string Bundle(const std::string& id, int incarnation = 1, const std::string& more = "") const {
    const std::string bundle = folder_ + "/bundles/" + id;
    EXPECT_TRUE(MakeDirectories(bundle + "/rootfs").ok());
    const std::string config = absl::StrCat(
        R"({"root": {"path": "rootfs", "readonly": true}, "annotations": {)",
        R"("io.kubernetes.cri.container-name": "main", "io.kubernetes.cri.container-type": "container", )",
        R"("io.kubernetes.cri.sandbox-uid": ")", Uid(incarnation), R"("})", more, "}");
    EXPECT_TRUE(WriteFileAtomically(bundle + "/config.json", config).ok());
    return bundle;
  }
  ProgramResult SidingRunc(const std::vector<std::string>& words) const {
    std::vector<std::string> argv = {folder_ + "/bin/siding-runc", "--root", root(), "--log",
                                     folder_ + "/runc.log"};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto result = RunProgram(argv, kPatience);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(ProgramResult{.exit_code = -1});
  }
  ProgramResult Create(const std::string& id, int incarnation = 1, const std::string& more = "") const {
    const std::string bundle = Bundle(id, incarnation, more);
    return SidingRunc({"create", "--bundle", bundle, "--pid-file", bundle + "/pid", id});
  }
  std::future<ProgramResult> BeginCreate(const std::string& id, int incarnation = 1) const {
    return std::async(std::launch::async, [=, this] { return Create(id, incarnation); });
  }
  void Make(const std::string& id, int incarnation = 1, const std::string& more = "") const {
    const ProgramResult made = Create(id, incarnation, more);
    EXPECT_EQ(made.exit_code, 0) << made.errors;
    EXPECT_EQ(SidingRunc({"start", id}).exit_code, 0);
  }
  void End(const std::string& id) const {
    const pid_t init = InitOf(id);
    ASSERT_GT(init, 0);
    kill(-init, SIGKILL);
    EXPECT_TRUE(PollUntil([&] { return !ReadProcessStat(init); }, kPatience));
    SidingRunc({"delete", id});
  }

  // ---- The script that is runc. ----
  // With these words the program of a container is started from now on.
  void SetJob(const std::vector<std::string>& words) const {
    EXPECT_TRUE(WriteFileAtomically(root() + "/job", absl::StrJoin(words, " ")).ok());
  }
  static void SendDatagram(const std::string& name) {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    ASSERT_LT(name.size(), sizeof address.sun_path);
    name.copy(address.sun_path, name.size());
    const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM, 0));
    ASSERT_EQ(sendto(fd.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address), sizeof address), 1) << name;
  }
  void Fail(const std::string& verb, const std::string& what) const {
    EXPECT_TRUE(WriteFileAtomically(root() + "/fail-" + verb, what + "\n").ok());
  }
  void FailLate(const std::string& verb, const std::string& what) const {
    EXPECT_TRUE(WriteFileAtomically(root() + "/late-" + verb, what + "\n").ok());
  }
  void FailNoMore(const std::string& verb) const { std::filesystem::remove(root() + "/fail-" + verb); }
  void Hold(const std::string& verb) const {
    std::filesystem::remove(root() + "/in-" + verb);
    EXPECT_EQ(mkfifo((root() + "/hold-" + verb).c_str(), 0600), 0);
  }
  void AwaitHeld(const std::string& verb) const {
    EXPECT_TRUE(PollUntil([&] { return std::filesystem::exists(root() + "/in-" + verb); }, kPatience));
  }
  void Hang(const std::string& verb) const {
    EXPECT_TRUE(WriteFileAtomically(root() + "/hang-" + verb, "").ok());
  }
  void HangNoMore(const std::string& verb) const { std::filesystem::remove(root() + "/hang-" + verb); }
  pid_t AwaitCriu() const {
    const auto criu = [&] { return std::atoi(ReadFile(root() + "/criu").value_or("0").c_str()); };
    EXPECT_TRUE(PollUntil([&] { return criu() > 0; }, kPatience));
    return criu();
  }
  void ExpectNoCriu(pid_t criu) const {
    const auto stat = ReadProcessStat(criu);
    EXPECT_TRUE(!stat || stat->state == 'Z' || stat->state == 'X');
  }
  void LetGo(const std::string& verb) const {
    const std::string path = root() + "/hold-" + verb;
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    std::filesystem::remove(path);
    EXPECT_EQ(write(fd.get(), "\n", 1), 1);
  }
  pid_t InitOf(const std::string& id) const {
    return std::atoi(ReadFile(root() + "/" + id + "/pid").value_or("0").c_str());
  }
  std::string Calls() const { return ReadFile(root() + "/calls").value_or(""); }
  void AwaitCall(const std::string& call) const {
    EXPECT_TRUE(PollUntil([&] { return absl::StrContains(Calls(), call); }, kPatience)) << Calls();
  }

  // ---- What is to be seen. ----
  bool Stands(pid_t pid) const {
    const auto stat = ReadProcessStat(pid);
    return !stat || stat->state == 'T' || stat->state == 'Z' || stat->state == 'X';
  }
  // Nothing of it does anything, neither now nor without us.
  void ExpectFrozen(const std::string& id) const {
    const auto stands = [&] {
      const std::vector<pid_t> all = ProcessTree(InitOf(id));
      return std::all_of(all.begin(), all.end(), [&](pid_t pid) { return Stands(pid); });
    };
    EXPECT_TRUE(PollUntil(stands, kPatience)) << id;
    EXPECT_TRUE(std::filesystem::exists(root() + "/" + id + "/paused")) << id;
  }
  void ExpectRuns(const std::string& id) {
    EXPECT_FALSE(std::filesystem::exists(root() + "/" + id + "/paused")) << id;
    AwaitMoreLines();
  }
  bool HasImage(const std::string& checkpoint) const {
    return std::filesystem::exists(folder_ + "/shared/images/" + checkpoint);
  }
  agent::TaskRecord Recorded(int incarnation = 1) const {
    return ReadJsonFile<agent::TaskRecord>(
               absl::StrCat(tasks_folder(), "/", job_, ".", incarnation, ".0/task.json"))
        .value_or(agent::TaskRecord());
  }
  void AwaitRecorded(v1::TaskPhase phase, int incarnation = 1) const {
    EXPECT_TRUE(PollUntil([&] { return Recorded(incarnation).report().phase() == phase; }, kPatience))
        << Recorded(incarnation).DebugString();
  }
  v1::TaskPhase PhaseNow(int incarnation = 1) {
    for (const v1::TaskReport& report : host().Reports()) {
      if (report.task().incarnation() == incarnation) return report.phase();
    }
    return v1::TASK_PHASE_UNSPECIFIED;
  }

  void RunPod() {
    LaunchPod();
    Make("c1");
    AwaitPhase(v1::RUNNING);
    AwaitLines(1);
  }
  void SuspendPod() {
    RunPod();
    Suspend(2);
    AwaitPhase(v1::SUSPENDED);
  }
  // By a dump that leaves, its pod being gone.
  void Park(const std::string& checkpoint) {
    RunPod();
    Dump(2, checkpoint);
    AwaitPhase(v1::PREPARED);
    Commit(2);
    AwaitLeaves();
    Gone();
    AwaitPhase(v1::CHECKPOINTED);
    std::filesystem::remove_all(root() + "/c1");
  }
};

// ---- Its start. ----

TEST_F(PodTest, AContainerThatComesBeforeItsOrderIsMadeThen) {
  auto created = BeginCreate("c1");
  LaunchPod();
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING);
  AwaitMoreLines();
}

TEST_F(PodTest, ATaskWaitsForItsContainer) {
  LaunchPod();
  AwaitPhase(v1::LAUNCHING);
  Make("c1");
  const v1::TaskReport report = AwaitPhase(v1::RUNNING);
  EXPECT_GT(report.started_us(), 0);
  EXPECT_EQ(report.spec().name(), "pod") << "the controller may not know it";
}

TEST_F(PodTest, AContainerThatCannotBeMadeIsTriedAgainByItsKubelet) {
  LaunchPod();
  Fail("create", "no room");
  EXPECT_EQ(Create("c1").exit_code, 1);
  EXPECT_EQ(PhaseNow(), v1::LAUNCHING);
  FailNoMore("create");
  Make("c2");
  AwaitPhase(v1::RUNNING);
}

TEST_F(PodTest, AContainerThatIsMadeAnewIsTheTasksFromThenOn) {
  RunPod();
  End("c1");
  Make("c2");
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  ExpectFrozen("c2");
}

TEST_F(PodTest, BetweenTwoContainersThereIsNothingToSave) {
  RunPod();
  EXPECT_EQ(host().Reports().at(0).cannot_checkpoint(), "");
  EXPECT_GT(host().Reports().at(0).memory(), 0);
  End("c1");
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("does not run"));
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("does not run"));
  EXPECT_FALSE(DraftsLeft());
}

// ---- What cannot be saved is known before it is tried. ----

TEST_F(PodTest, APartOfAVolumeIsSaidBeforehand) {
  LaunchPod();
  Make(
      "c1", 1,
      R"(, "mounts": [{"destination": "/x", "source": "/pods/uid-1/volumes/kubernetes.io~empty-dir/vol/x"}])");
  AwaitPhase(v1::RUNNING);
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("a part of the volume"));
}

TEST_F(PodTest, ATerminalIsSaidBeforehand) {
  LaunchPod();
  Make("c1", 1, R"(, "process": {"terminal": true})");
  AwaitPhase(v1::RUNNING);
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("terminal"));
}

TEST_F(PodTest, AProcessThatCannotBeDumpedIsSaidBeforehand) {
  SetJob({"-d", "main", "1000000"});
  RunPod();
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(), HasSubstr("is being traced by"));
}

TEST_F(PodTest, WhatAProcessHasForAMomentCountsWhenItIsSeenTwice) {
  SetJob({"-r", "/etc/passwd", "1000000"});
  LaunchPod();
  Make("c1", 1,
       R"(, "mounts": [{"destination": "/etc/passwd", "source": "/var/lib/kubelet/pods/u/etc-hosts"}])");
  AwaitPhase(v1::RUNNING);
  AwaitLines(1);
  EXPECT_EQ(host().Reports().at(0).cannot_checkpoint(), "");
  EXPECT_THAT(host().Reports().at(0).cannot_checkpoint(),
              HasSubstr("/etc/passwd open, which is another file"));
}

TEST_F(PodTest, WhatHoldsThePodsNamespacesIsNotAskedFor) {
  const std::string bundle = Bundle("sandbox");
  ASSERT_TRUE(WriteFileAtomically(bundle + "/config.json",
                                  R"({"root": {"path": "rootfs"}, "annotations": {
                                      "io.kubernetes.cri.container-type": "sandbox",
                                      "io.kubernetes.cri.sandbox-uid": "uid-1"}})")
                  .ok());
  EXPECT_EQ(SidingRunc({"create", "--bundle", bundle, "--pid-file", bundle + "/pid", "sandbox"}).exit_code,
            0);
}

TEST_F(PodTest, WithoutAnAgentNoContainerIsMadeAndTheRuntimesLogSaysWhy) {
  host_.reset();
  SetPatience(kAtOnce);
  const ProgramResult result = Create("c1");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("siding-agent cannot be reached"));
  EXPECT_THAT(ReadFile(folder_ + "/runc.log").value_or(""), HasSubstr("siding-agent cannot be reached"));
  EXPECT_THAT(Calls(), Not(HasSubstr("create")));
}

TEST_F(PodTest, OtherVerbsAreTheRuntimes) {
  RunPod();
  EXPECT_THAT(SidingRunc({"state", "c1"}).output, HasSubstr(R"("status": "running")"));
  EXPECT_NE(SidingRunc({"state", "c2"}).exit_code, 0);
}

TEST_F(PodTest, AnAgentThatServesNoPodsSaysSo) {
  host_.reset();
  TaskHostOptions options = Options();
  options.pods_socket.clear();
  host_ = NewTaskHost(options, sink_, SystemClock()).value();
  LaunchPod();
  EXPECT_THAT(AwaitPhase(v1::LAUNCH_FAILED).error(), HasSubstr("--pods-socket"));
}

TEST_F(PodTest, WithoutARecordOfItNoContainerIsMade) {
  LaunchPod();
  ASSERT_TRUE(ArmFaults("agent.record=error", "", {}).ok());
  const ProgramResult result = Create("c1");
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(Calls(), Not(HasSubstr("create")));
}

// Its shell was killed, as a runtime does that has waited long enough; the container is made all the same.
TEST_F(PodTest, AContainerWhoseMakerIsKilledIsFound) {
  LaunchPod();
  Hold("create");
  const std::string bundle = Bundle("c1");
  const pid_t maker = fork();
  ASSERT_GE(maker, 0);
  if (maker == 0) {
    const std::string program = folder_ + "/bin/siding-runc", pid_file = bundle + "/pid", at = root();
    execl(program.c_str(), program.c_str(), "--root", at.c_str(), "create", "--bundle", bundle.c_str(),
          "--pid-file", pid_file.c_str(), "c1", nullptr);
    _exit(127);
  }
  AwaitHeld("create");
  kill(maker, SIGKILL);
  waitpid(maker, nullptr, 0);
  LetGo("create");
  AwaitPhase(v1::RUNNING);
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  ExpectFrozen("c1");
}

// ---- Suspended and back. ----

TEST_F(PodTest, ASuspendedPodStandsAndGoesOn) {
  SuspendPod();
  ExpectFrozen("c1");
  Resume(3);
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodTest, ASuspendThatFailsLeavesItRunning) {
  RunPod();
  Fail("pause", "the freezer is stuck");
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("the freezer is stuck"));
  ExpectRuns("c1");
}

TEST_F(PodTest, ASuspendThatCannotBeUndoneIsNoPodThatRuns) {
  RunPod();
  FailLate("pause", "no answer");
  Fail("resume", "no memory");
  Suspend(2);
  const auto report = sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 2; });
  EXPECT_THAT(report.error(), HasSubstr("no answer"));
  EXPECT_THAT(report.error(), HasSubstr("no memory"));
  EXPECT_EQ(report.phase(), v1::SUSPENDED);
  ExpectFrozen("c1");
  FailNoMore("resume");
  Resume(3);
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodTest, AResumeThatFailsLeavesItSuspended) {
  SuspendPod();
  Fail("resume", "the freezer is stuck");
  Resume(3);
  sink_.Await(Task(), [](const auto& report) { return report.failed_op() == 3; });
  EXPECT_EQ(PhaseNow(), v1::SUSPENDED);
  FailNoMore("resume");
  Resume(4);
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodTest, ASuspendedContainerThatEndsIsNotMadeAnew) {
  SuspendPod();
  End("c1");
  const ProgramResult result = Create("c2");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("the pod is to leave"));
}

TEST_F(PodTest, AfterAResumeItIs) {
  SuspendPod();
  End("c1");
  Resume(3);
  AwaitPhase(v1::RUNNING);
  EXPECT_FALSE(Recorded().frozen());
  Make("c2");
}

// ---- Dumps. ----

TEST_F(PodTest, ADumpStandsUntilItIsDecided) {
  RunPod();
  Dump(2, "1.1");
  const v1::TaskReport report = AwaitPhase(v1::PREPARED);
  EXPECT_EQ(report.checkpoint(), "1.1");
  EXPECT_GT(report.image_bytes(), 0);
  EXPECT_FALSE(report.leaves());
  ExpectFrozen("c1");
}

TEST_F(PodTest, OneThatIsToKeepRunningDoesSoBehindItsImage) {
  RunPod();
  Dump(2, "1.1", /*keep_running=*/true);
  AwaitPhase(v1::PREPARED);
  ExpectFrozen("c1");
  Commit(2);
  EXPECT_EQ(AwaitPhase(v1::RUNNING).committed_op(), 2);
  EXPECT_TRUE(HasImage("1.1"));
  ExpectRuns("c1");
}

TEST_F(PodTest, OneThatLeavesNeverRunsAgain) {
  RunPod();
  const std::vector<pid_t> all = ProcessTree(InitOf("c1"));
  ASSERT_EQ(all.size(), 2u);
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(2);
  const v1::TaskReport report = AwaitLeaves();
  EXPECT_EQ(report.phase(), v1::PREPARED);
  EXPECT_EQ(report.committed_op(), 2);
  EXPECT_TRUE(HasImage("1.1"));
  ExpectFrozen("c1");
  EXPECT_TRUE(PollUntil([&] { return ProcessTree(all[0]).size() == 1; }, kPatience))
      << "the first alone is left";
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
  EXPECT_THAT(Create("c2").errors, HasSubstr("the pod is to leave"));
}

TEST_F(PodTest, ItIsCheckpointedWhenItsPodIsGone) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitLeaves();
  Gone();
  const v1::TaskReport report = AwaitPhase(v1::CHECKPOINTED);
  EXPECT_EQ(report.checkpoint(), "1.1");
  EXPECT_EQ(report.committed_op(), 2);
  EXPECT_FALSE(report.leaves());
  EXPECT_TRUE(PollUntil([&] { return ProcessTree(InitOf("c1")).empty(); }, kPatience));
}

TEST_F(PodTest, HowItsKubeletSawThatEndDoesNotMatter) {
  for (const int code : {0, 137, 143}) {
    const std::string checkpoint = absl::StrCat("1.", code + 1), id = absl::StrCat("c", code);
    const int64_t op = 10 + code;
    v1::ToAgent launch = PodCommand(op, code + 1);
    launch.mutable_launch();
    Order(launch);
    Make(id, code + 1);
    AwaitPhase(v1::RUNNING, code + 1);
    v1::ToAgent dump = Command(op + 1, code + 1);
    dump.mutable_dump()->set_checkpoint(checkpoint);
    dump.mutable_dump()->set_tier(v1::SHARED);
    Order(dump);
    AwaitPhase(v1::PREPARED, code + 1);
    v1::ToAgent commit = Command(op + 1, code + 1);
    commit.mutable_commit();
    Order(commit);
    sink_.Await(Task(code + 1), [](const auto& report) { return report.leaves(); });
    Gone(code, code + 1);
    AwaitPhase(v1::CHECKPOINTED, code + 1);
  }
}

TEST_F(PodTest, ADumpThatIsCalledOffIsUndone) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("called off"));
  EXPECT_FALSE(DraftsLeft());
  EXPECT_FALSE(HasImage("1.1"));
  ExpectRuns("c1");
}

TEST_F(PodTest, ADumpThatIsNotCommittedInTimeIsUndone) {
  RunPod();
  Dump(2, "1.1", false, 1'000);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("not committed in time"));
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
}

// ---- A runc or a criu that does not come back. ----

TEST_F(PodTest, ADumpInWhichCriuHangsIsUndoneWhenItIsCalledOff) {
  RunPod();
  Hang("checkpoint");
  Dump(2, "1.1");
  const pid_t criu = AwaitCriu();
  Abort(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("called off"));
  ExpectNoCriu(criu);
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
  HangNoMore("checkpoint");
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
}

TEST_F(PodTest, ADumpInWhichCriuHangsIsUndoneWhenItsTimeIsOver) {
  RunPod();
  Hang("checkpoint");
  Dump(2, "1.1", false, 1'000);
  const pid_t criu = AwaitCriu();
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("not committed in time"));
  ExpectNoCriu(criu);
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
}

TEST_F(PodTest, OfOneThatWasSuspendedADumpInWhichCriuHangsLeavesItSo) {
  SuspendPod();
  Hang("checkpoint");
  Dump(3, "1.1");
  const pid_t criu = AwaitCriu();
  std::filesystem::remove(root() + "/c1/paused");  // as that criu may have left it
  kill(-InitOf("c1"), SIGCONT);
  Abort(3);
  sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 3 && r.phase() == v1::SUSPENDED; });
  ExpectNoCriu(criu);
  ExpectFrozen("c1");
}

TEST_F(PodTest, OneThatCannotBeFrozenAgainBehindADumpIsNotSaidToBe) {
  SuspendPod();
  Hang("checkpoint");
  Dump(3, "1.1");
  AwaitCriu();
  std::filesystem::remove(root() + "/c1/paused");
  kill(-InitOf("c1"), SIGCONT);
  Fail("pause", "no memory");
  Abort(3);
  sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 3 && r.phase() != v1::DUMPING; });
  EXPECT_EQ(PhaseNow(), v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodTest, AnEndByACriuThatWasKilledIsNotItsOwn) {
  RunPod();
  Hang("checkpoint");
  Dump(2, "1.1");
  AwaitCriu();
  Abort(2);
  sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 2 && r.phase() == v1::RUNNING; });
  Gone(128 + SIGTRAP);
  EXPECT_THAT(AwaitPhase(v1::LOST).error(), HasSubstr("criu was killed"));
}

TEST_F(PodTest, AnAgentThatStopsDoesNotWaitForACriuThatHangs) {
  RunPod();
  Hang("checkpoint");
  Dump(2, "1.1");
  const pid_t criu = AwaitCriu();
  host_.reset();
  ExpectNoCriu(criu);
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
}

TEST_F(PodTest, ARestoreInWhichCriuHangsFailsInTime) {
  Park("1.1");
  RestorePod("1.1");
  Hang("restore");
  SetPatience(kUntilItGivesUp);
  const ProgramResult result = Create("c2", 2);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("criu did not end within 10 s"));
  EXPECT_THAT(AwaitPhase(v1::RESTORE_FAILED, 2).error(), HasSubstr("criu did not end"));
  ExpectNoCriu(AwaitCriu());
}

class ImpatientPodTest : public PodTest {
 protected:
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = PodTest::Options(node);
    options.runc_patience.usual = std::chrono::seconds(2);
    return options;
  }
};

TEST_F(ImpatientPodTest, ASuspendThatHangsIsUndone) {
  RunPod();
  Hang("pause");
  Suspend(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("did not end within"));
  HangNoMore("pause");
  ExpectRuns("c1");
  Suspend(3);
  AwaitPhase(v1::SUSPENDED);
}

TEST_F(PodTest, WhatTheRuntimeFailsAtIsSaidInCriusWords) {
  RunPod();
  Fail("checkpoint", "a socket of an unknown kind");
  Dump(2, "1.1");
  EXPECT_EQ(AwaitFailure(2).error(), "criu: a socket of an unknown kind");
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
  FailNoMore("checkpoint");
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
}

TEST_F(PodTest, AContainerThatSomebodyHasResumedIsNotCommitted) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  SidingRunc({"resume", "c1"});
  Commit(2);
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("somebody has resumed"));
  EXPECT_FALSE(HasImage("1.1"));
  ExpectRuns("c1");
}

TEST_F(PodTest, WithAPartOfAVolumeItIsRefusedBeforeAnythingIsDone) {
  LaunchPod();
  Make(
      "c1", 1,
      R"(, "mounts": [{"destination": "/x", "source": "/pods/uid-1/volumes/kubernetes.io~empty-dir/vol/x"}])");
  AwaitPhase(v1::RUNNING);
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("vol/x"));
  EXPECT_THAT(Calls(), Not(HasSubstr("checkpoint")));
  ExpectRuns("c1");
}

TEST_F(PodTest, VolumesComeBackWithIt) {
  const auto mount = [&](const std::string& pod) {
    const std::string volume = folder_ + "/" + pod + "/volumes/kubernetes.io~empty-dir/vol";
    EXPECT_TRUE(MakeDirectories(volume).ok());
    return absl::StrCat(R"(, "mounts": [{"destination": "/x", "source": ")", volume, R"("}])");
  };
  const std::string first = mount("pods/uid-1");
  ASSERT_TRUE(
      WriteFileAtomically(folder_ + "/pods/uid-1/volumes/kubernetes.io~empty-dir/vol/file", "text").ok());
  LaunchPod();
  Make("c1", 1, first);
  AwaitPhase(v1::RUNNING);
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitLeaves();
  Gone();
  AwaitPhase(v1::CHECKPOINTED);
  RestorePod("1.1");
  Make("c2", 2, mount("pods/uid-2"));
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_EQ(ReadFile(folder_ + "/pods/uid-2/volumes/kubernetes.io~empty-dir/vol/file").value_or(""), "text");
}

TEST_F(PodTest, ASuspendedPodLeavesWithoutRunning) {
  SuspendPod();
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(3);
  AwaitLeaves();
  ExpectFrozen("c1");
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
}

TEST_F(PodTest, ASuspendedPodIsSuspendedAgainIfItsDumpFails) {
  SuspendPod();
  Dump(3, "1.1");
  AwaitPhase(v1::PREPARED);
  Abort(3);
  sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 3 && r.phase() == v1::SUSPENDED; });
  ExpectFrozen("c1");
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
}

// It had no time to read it, and reads nothing now.
TEST_F(PodTest, WhatASuspendedPodHasNotReadIsNotLost) {
  const std::string name = folder_ + "/datagrams";
  SetJob({"-q", name, "1000000"});
  SuspendPod();
  SendDatagram(name);
  Dump(3, "1.1");
  const auto report =
      sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 3 || r.phase() == v1::PREPARED; });
  EXPECT_THAT(report.error(), HasSubstr("has not read the datagrams that have come to its Unix socket"));
  EXPECT_THAT(report.error(), HasSubstr("; resume it for a moment"));
  EXPECT_EQ(report.phase(), v1::SUSPENDED);
  ExpectFrozen("c1");
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
  EXPECT_FALSE(DraftsLeft());
}

TEST_F(PodTest, AnErrorAtAnyStepOfADumpUndoesIt) {
  RunPod();
  int64_t op = 10;
  for (const char* point :
       {"agent.pod.dump", "agent.pod.draft", "agent.pod.dumped", "agent.pod.sealed", "agent.dump.prepared"}) {
    ASSERT_TRUE(ArmFaults(absl::StrCat(point, "=error"), "", {}).ok());
    Dump(++op, "1.1");
    EXPECT_THAT(AwaitFailure(op).error(), HasSubstr(point));
    EXPECT_FALSE(DraftsLeft()) << point;
    ExpectRuns("c1");
  }
  for (const std::string point : {"agent.pod.decided", "agent.dump.committing", "agent.pod.remembered"}) {
    ASSERT_TRUE(ArmFaults(absl::StrCat(point, "=error"), "", {}).ok());
    // One that is to leave is held until its commit can be remembered.
    Dump(++op, "1.1", /*keep_running=*/point == "agent.dump.committing");
    AwaitPhase(v1::PREPARED);
    Commit(op);
    EXPECT_THAT(AwaitFailure(op).error(), HasSubstr(point));
    EXPECT_FALSE(DraftsLeft()) << point;
    EXPECT_FALSE(HasImage("1.1")) << point;
    ExpectRuns("c1");
  }
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
}

TEST_F(PodTest, AnErrorAtAnyStepOfASuspendUndoesIt) {
  RunPod();
  int64_t op = 10;
  for (const char* point : {"agent.pod.suspend", "agent.pod.suspended"}) {
    ASSERT_TRUE(ArmFaults(absl::StrCat(point, "=error"), "", {}).ok());
    Suspend(++op);
    EXPECT_THAT(AwaitFailure(op).error(), HasSubstr(point));
    ExpectRuns("c1");
  }
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
}

TEST_F(PodTest, AnErrorBeforeAResumeLeavesItSuspended) {
  SuspendPod();
  ASSERT_TRUE(ArmFaults("agent.pod.resume=error", "", {}).ok());
  Resume(3);
  sink_.Await(Task(), [](const auto& r) { return r.failed_op() == 3 && r.phase() == v1::SUSPENDED; });
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  ExpectFrozen("c1");
}

// ---- The pod is gone. ----

TEST_F(PodTest, WithoutAnExitCodeThePodIsLost) {
  RunPod();
  Gone();
  AwaitPhase(v1::LOST);
  EXPECT_TRUE(PollUntil([&] { return ProcessTree(InitOf("c1")).empty(); }, kPatience));
}

TEST_F(PodTest, WithOneItHasEnded) {
  RunPod();
  Gone(7);
  const v1::TaskReport report = AwaitPhase(v1::EXITED);
  EXPECT_EQ(report.exit_code(), 7);
  EXPECT_TRUE(report.own_end());
}

TEST_F(PodTest, BeforeItsContainerIsMadeTheSame) {
  LaunchPod();
  AwaitPhase(v1::LAUNCHING);
  Gone();
  AwaitPhase(v1::LOST);
  EXPECT_NE(Create("c1").exit_code, 0) << "it may not be made any more";
}

TEST_F(PodTest, BeforeItsContainerIsMadeItCanHaveEnded) {
  LaunchPod();
  AwaitPhase(v1::LAUNCHING);
  Gone(1);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 1);
}

TEST_F(PodTest, ASuspendedPodCanBeGone) {
  SuspendPod();
  Gone();
  AwaitPhase(v1::LOST);
  EXPECT_TRUE(PollUntil([&] { return ProcessTree(InitOf("c1")).empty(); }, kPatience));
}

TEST_F(PodTest, ASuspendedPodCanHaveEnded) {
  SuspendPod();
  Gone(137);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 137);
}

TEST_F(PodTest, APodThatGoesWhileItIsDumpedLeavesNoImage) {
  RunPod();
  Hold("checkpoint");
  Dump(2, "1.1");
  AwaitHeld("checkpoint");
  Gone();
  LetGo("checkpoint");
  AwaitPhase(v1::LOST);
  EXPECT_FALSE(DraftsLeft());
  EXPECT_FALSE(HasImage("1.1"));
}

TEST_F(PodTest, APodThatEndsBeforeItIsDecidedHasEnded) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Gone(137);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 137);
  EXPECT_FALSE(DraftsLeft());
  EXPECT_FALSE(HasImage("1.1"));
}

TEST_F(PodTest, APodThatHasAnImageAndRanOnHasEnded) {
  RunPod();
  Dump(2, "1.1", /*keep_running=*/true);
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitPhase(v1::RUNNING);
  Gone(0);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0);
}

TEST_F(PodTest, APodThatGoesWhileItIsRestoredIsLost) {
  Park("1.1");
  RestorePod("1.1");
  AwaitPhase(v1::RESTORING, 2);
  Gone(std::nullopt, 2);
  AwaitPhase(v1::LOST, 2);
  EXPECT_NE(Create("c2", 2).exit_code, 0);
}

TEST_F(PodTest, ThatItIsGoneIsTakenTwice) {
  RunPod();
  Gone(7);
  const auto version = AwaitPhase(v1::EXITED).version();
  Gone(8);
  const auto again = sink_.Await(Task(), [&](const auto& report) { return report.version() > version; });
  EXPECT_EQ(again.exit_code(), 7);
}

TEST_F(PodTest, OfAPodThatIsNotKnownTheEndIsSaid) {
  Gone();
  EXPECT_THAT(AwaitPhase(v1::LOST).error(), HasSubstr("no such task"));
}

TEST_F(PodTest, WhatIsForgottenLeavesNothing) {
  RunPod();
  Gone(0);
  AwaitPhase(v1::EXITED);
  v1::ToAgent forget = Command(9);
  forget.mutable_forget();
  const auto forgotten = [&] {
    Order(forget);
    return std::filesystem::is_empty(tasks_folder());
  };
  EXPECT_TRUE(PollUntil(forgotten, kPatience));
}

// ---- Restores. ----

TEST_F(PodTest, ARestoredContainerGoesOnFromItsImage) {
  Park("1.1");
  RestorePod("1.1");
  Make("c2", 2);
  const v1::TaskReport report = AwaitPhase(v1::RUNNING, 2);
  EXPECT_GT(report.image_bytes(), 0);
  EXPECT_EQ(ReadFile(root() + "/restored").value_or(""), "the state of c1\n");
  EXPECT_THAT(Calls(), Not(HasSubstr("create c2")));
  EXPECT_THAT(Calls(), Not(HasSubstr("start c2"))) << "it runs since it was restored";
  ExpectRuns("c2");
}

TEST_F(PodTest, AContainerThatComesBeforeItsImageIsVerifiedWaits) {
  Park("1.1");
  auto created = BeginCreate("c2", 2);
  RestorePod("1.1");
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_THAT(Calls(), HasSubstr("restore c2"));
}

TEST_F(PodTest, AContainerThatPreparesThePodIsNotRestored) {
  Park("1.1");
  RestorePod("1.1");
  const std::string bundle = Bundle("prepares", 2);
  const std::string config = ReadFile(bundle + "/config.json").value_or("");
  ASSERT_TRUE(WriteFileAtomically(bundle + "/config.json",
                                  absl::StrReplaceAll(config, {{R"("main")", R"("prepares")"}}))
                  .ok());
  EXPECT_EQ(SidingRunc({"create", "--bundle", bundle, "--pid-file", bundle + "/pid", "prepares"}).exit_code,
            0);
  EXPECT_THAT(Calls(), HasSubstr("create prepares"));
  EXPECT_EQ(PhaseNow(2), v1::RESTORING);
  End("prepares");
  Make("c2", 2);
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_THAT(Calls(), HasSubstr("restore c2"));
}

TEST_F(PodTest, ARestoredContainerThatEndsBeginsAgainAsItsKubeletWants) {
  Park("1.1");
  RestorePod("1.1");
  Make("c2", 2);
  AwaitPhase(v1::RUNNING, 2);
  End("c2");
  Make("c3", 2);
  EXPECT_THAT(Calls(), HasSubstr("create c3"));
}

TEST_F(PodTest, ADamagedImageIsSaidAndNotRestored) {
  Park("1.1");
  std::string pages;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/shared/images")) {
    if (entry.path().filename() == "pages-1.img") pages = entry.path();
  }
  {
    const UniqueFd fd(open(pages.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(pwrite(fd.get(), "?", 1, 0), 1);
  }
  RestorePod("1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_TRUE(report.image_damaged());
  EXPECT_FALSE(report.node_problem());
  SetPatience(kUntilItGivesUp);
  const ProgramResult result = Create("c2", 2);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("pages-1.img"));
  EXPECT_THAT(Calls(), Not(HasSubstr("c2")));
}

TEST_F(PodTest, AMissingImageIsNotDamagedAndNotTheNodesProblem) {
  RestorePod("1.9");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_FALSE(report.image_damaged());
  EXPECT_FALSE(report.node_problem());
  SetPatience(kAtOnce);
  EXPECT_NE(Create("c2", 2).exit_code, 0);
}

TEST_F(PodTest, OfATierThatIsAwayNothingIsSaid) {
  std::filesystem::rename(folder_ + "/shared", folder_ + "/away");
  RestorePod("1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_FALSE(report.image_damaged());
  EXPECT_TRUE(report.node_problem());
}

TEST_F(PodTest, ARestoreThatTheRuntimeFailsAtIsSaidInCriusWords) {
  Park("1.1");
  RestorePod("1.1");
  Fail("restore", "a pid is in use");
  SetPatience(kUntilItGivesUp);
  const ProgramResult result = Create("c2", 2);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("criu: a pid is in use"));
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(report.error(), HasSubstr("criu: a pid is in use"));
  EXPECT_FALSE(report.image_damaged());
  EXPECT_FALSE(report.node_problem());
}

TEST_F(PodTest, AnErrorBeforeAnImageIsVerifiedIsTheNodes) {
  Park("1.1");
  ASSERT_TRUE(ArmFaults("agent.pod.restore=error", "", {}).ok());
  RestorePod("1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  ASSERT_TRUE(ArmFaults("", "", {}).ok());
  EXPECT_FALSE(report.image_damaged());
  EXPECT_TRUE(report.node_problem());
}

class EncryptedPodTest : public PodTest {
 protected:
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = PodTest::Options(node);
    options.keys = std::make_shared<store::KeyRing>(store::ParseSecretKey(std::string(64, digit_)).value());
    return options;
  }
  bool PlainFilesLeft() const {
    std::error_code error;
    const std::string folder = folder_ + "/n1/plain/restore";
    return std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error);
  }
  char digit_ = '1';
};

TEST_F(EncryptedPodTest, AnImageIsPlainOnlyWhileItIsRestored) {
  Park("1.1");
  RestorePod("1.1");
  Hold("restore");
  auto created = BeginCreate("c2", 2);
  AwaitHeld("restore");
  EXPECT_TRUE(PlainFilesLeft());
  LetGo("restore");
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_EQ(ReadFile(root() + "/restored").value_or(""), "the state of c1\n");
  EXPECT_TRUE(PollUntil([&] { return !PlainFilesLeft(); }, kPatience));
}

TEST_F(EncryptedPodTest, ARestoreThatFailsLeavesNoPlainFiles) {
  Park("1.1");
  RestorePod("1.1");
  Fail("restore", "a pid is in use");
  SetPatience(kUntilItGivesUp);
  EXPECT_NE(Create("c2", 2).exit_code, 0);
  AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_TRUE(PollUntil([&] { return !PlainFilesLeft(); }, kPatience));
}

TEST_F(EncryptedPodTest, WithAnotherKeyNothingIsRestoredAndTheImageIsNotBlamed) {
  Park("1.1");
  digit_ = '2';
  host_.reset();
  StartHost();
  RestorePod("1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_TRUE(report.no_key());
  EXPECT_FALSE(report.image_damaged());
  EXPECT_FALSE(PlainFilesLeft());
}

// Its programs have a personality, which another criu loses.
class NeedOfOursPodTest : public PodTest {
 protected:
  void Begin() override {
    const std::string runc = folder_ + "/bin/runc";
    const std::string text = ReadFile(runc).value();
    ASSERT_TRUE(WriteFileAtomically(
                    runc, absl::StrReplaceAll(text, {{"setsid sh", "setsid setarch linux32 sh"}}), 0755)
                    .ok());
    StartHost();
  }
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = PodTest::Options(node);
    options.criu_path = criu_;
    return options;
  }
  std::string criu_;
};

TEST_F(NeedOfOursPodTest, IsRestoredByNoOtherCriuAndTheImageIsNotBlamed) {
  criu_ = AnotherCriu();
  if (criu_.empty()) GTEST_SKIP() << "needs the criu that deploy/get-criu builds";
  Park("1.1");
  host_.reset();
  StartHost();
  RestorePod("1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(report.error(), HasSubstr(") has a personality of its own"));
  EXPECT_TRUE(report.node_problem());
  EXPECT_FALSE(report.image_damaged());
}

// ---- Killed. ----

TEST_F(PodTest, AKilledPodEndsWhenItIsGone) {
  RunPod();
  Kill(2);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  EXPECT_EQ(PhaseNow(), v1::RUNNING) << "its kubelet ends it";
  Gone();
  const v1::TaskReport report = AwaitPhase(v1::EXITED);
  EXPECT_EQ(report.exit_code(), 128 + SIGTERM);
  EXPECT_FALSE(report.own_end());
}

TEST_F(PodTest, HowAKilledPodHasEndedIsKept) {
  RunPod();
  Kill(2);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  Gone(3);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 3);
}

TEST_F(PodTest, AKilledPodThatWasSuspendedRunsToItsEnd) {
  SuspendPod();
  Kill(3);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  ExpectRuns("c1");
  Gone();
  AwaitPhase(v1::EXITED);
}

TEST_F(PodTest, AKillUndoesADump) {
  RunPod();
  Hang("checkpoint");
  Dump(2, "1.1");
  AwaitCriu();
  Kill(3);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
  Gone();
  AwaitPhase(v1::EXITED);
  EXPECT_FALSE(HasImage("1.1"));
}

TEST_F(PodTest, AKillBeforeTheDecisionUndoesTheDump) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Kill(3);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  EXPECT_FALSE(DraftsLeft());
  Gone();
  AwaitPhase(v1::EXITED);
}

TEST_F(PodTest, AKillBehindTheCommitChangesNothing) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitLeaves();
  Kill(3);
  ExpectFrozen("c1");
  Gone(137);
  AwaitPhase(v1::CHECKPOINTED);
}

TEST_F(PodTest, AKilledPodWithoutAContainerEndsWhenItIsGone) {
  LaunchPod();
  AwaitPhase(v1::LAUNCHING);
  Kill(2);
  EXPECT_TRUE(PollUntil([&] { return Recorded().killed(); }, kPatience));
  Gone();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 128 + SIGTERM);
}

// ---- Agents end, and others find what they left. ----

TEST_F(PodTest, AnAgentThatStopsUndoesADump) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  host_.reset();
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
  StartHost();
  EXPECT_EQ(PhaseNow(), v1::RUNNING);
}

TEST_F(PodTest, AnAgentThatStopsLeavesPodsAsTheyAre) {
  SuspendPod();
  host_.reset();
  ExpectFrozen("c1");
  StartHost();
  AwaitPhase(v1::SUSPENDED);
  Resume(3);
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodTest, AnAgentThatStopsWhileAPodLeavesLeavesItSo) {
  RunPod();
  Dump(2, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(2);
  AwaitLeaves();
  host_.reset();
  ExpectFrozen("c1");
  StartHost();
  AwaitLeaves();
  Gone();
  AwaitPhase(v1::CHECKPOINTED);
}

TEST_F(PodTest, APodWhoseContainerIsNotMadeYetWaitsForItUnderTheNextAgent) {
  LaunchPod();
  AwaitPhase(v1::LAUNCHING);
  host_.reset();
  StartHost();
  Make("c1");
  AwaitPhase(v1::RUNNING);
}

TEST_F(PodTest, WhatEndedWithoutAnAgentIsSaidWhenItIsKnown) {
  RunPod();
  host_.reset();
  End("c1");
  StartHost();
  AwaitPhase(v1::RUNNING);
  Gone(5);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 5);
}

// An agent in a process of its own, which dies at a fault point.
class PodDeathTest : public PodTest {
 protected:
  void Begin() override {}

  // `orders` run there.
  void DieAt(const std::string& point, const std::function<void()>& orders) {
    Spawn(point, orders);
    int status = 0;
    ASSERT_EQ(waitpid(agent_, &status, 0), agent_);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point << " was not reached";
  }
  // The same, and killed when the test says so.
  void Spawn(const std::string& point, const std::function<void()>& orders) {
    agent_ = fork();
    ASSERT_GE(agent_, 0);
    if (agent_ != 0) return;
    alarm(kPatience.count());
    if (!point.empty() && !ArmFaults(point + "=kill", "", {}).ok()) _exit(1);
    StartHost();
    orders();
    for (;;) pause();
  }
  void KillAgent() const {
    kill(agent_, SIGKILL);
    waitpid(agent_, nullptr, 0);
  }
  void DumpPod(bool keep_running = false) {
    Dump(5, "1.1", keep_running);
    AwaitPhase(v1::PREPARED);
    Commit(5);
  }
  v1::TaskReport AwaitUndone(v1::TaskPhase phase) {
    return sink_.Await(Task(), [&](const auto& r) { return r.failed_op() == 5 && r.phase() == phase; });
  }
  pid_t agent_ = 0;
};

TEST_F(PodDeathTest, APodIsFoundRunning) {
  Spawn("", [&] { RunPod(); });
  AwaitRecorded(v1::RUNNING);
  KillAgent();
  StartHost();
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
  Suspend(9);
  AwaitPhase(v1::SUSPENDED);
  ExpectFrozen("c1");
}

class DiesInASuspend : public PodDeathTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Points, DiesInASuspend,
                         ::testing::Values("agent.pod.suspend", "agent.pod.suspended"));

TEST_P(DiesInASuspend, ThePodRuns) {
  DieAt(GetParam(), [&] {
    RunPod();
    Suspend(2);
  });
  StartHost();
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
  EXPECT_FALSE(Recorded().frozen());
}

TEST_F(PodDeathTest, BeforeAResumeThePodIsSuspended) {
  DieAt("agent.pod.resume", [&] {
    SuspendPod();
    Resume(3);
  });
  StartHost();
  AwaitPhase(v1::SUSPENDED);
  ExpectFrozen("c1");
}

TEST_F(PodDeathTest, BehindAResumeThatIsNotRecordedThePodRuns) {
  DieAt("agent.pod.thawed", [&] {
    SuspendPod();
    Resume(3);
  });
  StartHost();
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
  EXPECT_FALSE(Recorded().frozen());
}

TEST_F(PodDeathTest, ASuspendedPodWhoseContainerHasEndedIsNotMadeAnew) {
  Spawn("", [&] { SuspendPod(); });
  AwaitRecorded(v1::SUSPENDED);
  KillAgent();
  End("c1");
  StartHost();
  AwaitPhase(v1::SUSPENDED);
  EXPECT_NE(Create("c2").exit_code, 0);
}

constexpr const char* kBeforeTheCommit[] = {
    "agent.pod.dump",      "agent.pod.draft",   "agent.pod.dumped",      "agent.pod.sealed",
    "agent.dump.prepared", "agent.pod.decided", "agent.dump.committing", "agent.pod.remembered",
};
class DiesInADump : public PodDeathTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Points, DiesInADump, ::testing::ValuesIn(kBeforeTheCommit));

TEST_P(DiesInADump, ThePodRunsAndCanBeDumpedAgain) {
  DieAt(GetParam(), [&] {
    RunPod();
    DumpPod();
  });
  StartHost();
  EXPECT_THAT(AwaitUndone(v1::RUNNING).error(), HasSubstr("the agent ended"));
  EXPECT_FALSE(DraftsLeft());
  EXPECT_FALSE(HasImage("1.1"));
  ExpectRuns("c1");
  Dump(6, "1.1");
  AwaitPhase(v1::PREPARED);
  Commit(6);
  AwaitLeaves();
}

TEST_P(DiesInADump, APodThatWasSuspendedIsSo) {
  DieAt(GetParam(), [&] {
    SuspendPod();
    DumpPod();
  });
  StartHost();
  AwaitUndone(v1::SUSPENDED);
  EXPECT_FALSE(DraftsLeft());
  ExpectFrozen("c1");
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
}

class DiesBehindTheCommit : public PodDeathTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Points, DiesBehindTheCommit,
                         ::testing::Values("agent.pod.committed", "agent.pod.leaves"));

TEST_P(DiesBehindTheCommit, ThePodNeverRunsAgain) {
  DieAt(GetParam(), [&] {
    RunPod();
    DumpPod();
  });
  StartHost();
  AwaitLeaves();
  EXPECT_TRUE(HasImage("1.1"));
  ExpectFrozen("c1");
  EXPECT_THAT(Calls(), Not(HasSubstr("resume")));
  EXPECT_NE(Create("c2").exit_code, 0);
  Gone(137);
  EXPECT_EQ(AwaitPhase(v1::CHECKPOINTED).committed_op(), 5);
}

TEST_F(PodDeathTest, BehindTheCommitOfOneThatIsToKeepRunningItRuns) {
  DieAt("agent.pod.committed", [&] {
    RunPod();
    DumpPod(/*keep_running=*/true);
  });
  StartHost();
  AwaitUndone(v1::RUNNING);
  EXPECT_FALSE(host().Reports().at(0).leaves());
  ExpectRuns("c1");
}

TEST_F(PodDeathTest, InTheMiddleOfADumpThePodRuns) {
  Hold("checkpoint");
  Spawn("", [&] {
    RunPod();
    Dump(5, "1.1");
  });
  AwaitHeld("checkpoint");
  KillAgent();
  StartHost();
  AwaitUndone(v1::RUNNING);
  LetGo("checkpoint");
  EXPECT_FALSE(DraftsLeft());
  ExpectRuns("c1");
}

TEST_F(PodDeathTest, InTheMiddleOfADumpThatHasThawedItASuspendedPodIsFrozenAgain) {
  Hold("checkpoint");
  Spawn("", [&] {
    SuspendPod();
    Dump(5, "1.1");
  });
  AwaitHeld("checkpoint");
  KillAgent();
  std::filesystem::remove(root() + "/c1/paused");  // as a criu that is ended with its agent leaves it
  kill(-InitOf("c1"), SIGCONT);
  StartHost();
  AwaitUndone(v1::SUSPENDED);
  LetGo("checkpoint");
  ExpectFrozen("c1");
}

TEST_F(PodDeathTest, AnEndThatIsNotJudgedYetIsSaidAgain) {
  DieAt("agent.pod.end", [&] {
    RunPod();
    Gone(3);
  });
  StartHost();
  AwaitPhase(v1::RUNNING);
  Gone(3);
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 3);
}

TEST_F(PodDeathTest, AnEndBehindTheCommitThatIsNotJudgedYetIsSaidAgain) {
  DieAt("agent.pod.end", [&] {
    RunPod();
    DumpPod();
    AwaitLeaves();
    Gone();
  });
  StartHost();
  AwaitLeaves();
  Gone();
  AwaitPhase(v1::CHECKPOINTED);
}

TEST_F(PodDeathTest, AnAgentThatDiesWhileItFindsAPodChangesNothing) {
  DieAt("agent.pod.suspended", [&] {
    RunPod();
    Suspend(2);
  });
  DieAt("agent.pod.adopt", [] {});
  StartHost();
  AwaitPhase(v1::RUNNING);
  ExpectRuns("c1");
}

TEST_F(PodDeathTest, AContainerThatIsMadeWithoutAnAgentIsFound) {
  Hold("create");
  Spawn("", [&] { LaunchPod(); });
  AwaitRecorded(v1::LAUNCHING);
  auto created = BeginCreate("c1");
  AwaitHeld("create");
  KillAgent();
  StartHost();
  AwaitCall("state c1");
  EXPECT_EQ(PhaseNow(), v1::LAUNCHING);
  LetGo("create");
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING);
  Suspend(2);
  AwaitPhase(v1::SUSPENDED);
  ExpectFrozen("c1");
}

TEST_F(PodDeathTest, BeforeAnImageIsHandedOutTheRestoreHasFailed) {
  DieAt("agent.pod.restore", [&] {
    Park("1.1");
    RestorePod("1.1");
  });
  StartHost();
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_TRUE(report.node_problem());
  EXPECT_FALSE(report.image_damaged());
  SetPatience(kAtOnce);
  EXPECT_NE(Create("c2", 2).exit_code, 0);
}

TEST_F(PodDeathTest, ARestoreThatEndsWithoutAnAgentIsFound) {
  Hold("restore");
  Spawn("", [&] {
    Park("1.1");
    RestorePod("1.1");
  });
  AwaitRecorded(v1::RESTORING, 2);
  auto created = BeginCreate("c2", 2);
  AwaitHeld("restore");
  KillAgent();
  StartHost();
  AwaitCall("state c2");
  EXPECT_EQ(PhaseNow(2), v1::RESTORING);
  LetGo("restore");
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING, 2);
  ExpectRuns("c2");
}

TEST_F(PodDeathTest, ARestoreThatFailsWithoutAnAgentIsSaidWhenTheRuntimeTriesAgain) {
  Hold("restore");
  Spawn("", [&] {
    Park("1.1");
    RestorePod("1.1");
  });
  AwaitRecorded(v1::RESTORING, 2);
  SetPatience(kUntilItGivesUp);
  auto created = BeginCreate("c2", 2);
  AwaitHeld("restore");
  KillAgent();
  StartHost();
  AwaitCall("state c2");
  EXPECT_EQ(PhaseNow(2), v1::RESTORING);
  Fail("restore", "a pid is in use");
  LetGo("restore");
  EXPECT_NE(created.get().exit_code, 0);
  EXPECT_THAT(Create("c3", 2).errors, HasSubstr("the agent ended during the restore"));
  EXPECT_TRUE(AwaitPhase(v1::RESTORE_FAILED, 2).node_problem());
}

// Its Job may have this one try only.
TEST_F(PodDeathTest, ARestoreThatFailsWithoutAnAgentIsTriedAgainInTheSamePod) {
  Hold("restore");
  Spawn("", [&] {
    Park("1.1");
    RestorePod("1.1");
  });
  AwaitRecorded(v1::RESTORING, 2);
  auto created = BeginCreate("c2", 2);
  AwaitHeld("restore");
  KillAgent();
  StartHost();
  AwaitCall("state c2");
  Fail("restore", "a pid is in use");
  LetGo("restore");
  EXPECT_TRUE(AwaitPhase(v1::RESTORE_FAILED, 2).node_problem());
  FailNoMore("restore");
  RestorePod("1.1", 3, 2);
  EXPECT_EQ(created.get().exit_code, 0);
  AwaitPhase(v1::RUNNING, 3);
  ExpectRuns("c2");
}

}  // namespace
}  // namespace siding
