// The table "What the kernel keeps" of docs/admin/checkpoints.md, row by row: each state is made by a real
// job (state_job.c), and is restored, or refused beforehand, or lost as it says there.

#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/queues.h"
#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/files.h"
#include "common/patience_for_test.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

class StateTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (!IsSkipped()) StartHost();
  }
  v1::JobSpec StateJob(const std::string& state) const {
    v1::JobSpec spec = Job({state, gate()});
    spec.set_command(0, SIDING_TEST_STATE);
    return spec;
  }
  // Launched, with its state made; skips the test where there is no such state.
  void Make(const std::string& state) {
    Launch(StateJob(state));
    sink_.Await(Task(), [](const auto& report) {
      return report.phase() == v1::RUNNING || report.phase() == v1::EXITED;
    });
    AwaitLines(1);
    const std::string said = ReadFile(output()).value_or("");
    if (said.rfind("made", 0) != 0) GTEST_SKIP() << said;
  }
  pid_t InitPid(int incarnation = 1) const {
    const auto record = ReadJsonFile<agent::TaskRecord>(
        absl::StrCat(tasks_folder(), "/", job_, ".", incarnation, ".0/task.json"));
    return record.ok() ? record->init().pid() : 0;
  }
  // What stands in the way of a dump of it by this machine's criu.
  std::string WhyNot(int incarnation = 1) const {
    return WhyNotDumpable(InitPid(incarnation), {NewCriu(*FindCriu(""))->Check()->kind(), std::nullopt});
  }
  // The exit code of the job that has been off its node.
  int CodeAfterRestore(const std::string& state) {
    Vacate("1.1");
    Restore(StateJob(state), "1.1");
    AwaitPhase(v1::RUNNING, 2);
    OpenGate();
    return AwaitPhase(v1::EXITED, 2).exit_code();
  }
};

struct Refused {
  const char* state;
  const char* why;
};
class RefusedStateTest : public StateTest, public ::testing::WithParamInterface<Refused> {};

TEST_P(RefusedStateTest, IsKnownBeforehand) {
  Make(GetParam().state);
  if (IsSkipped()) return;
  EXPECT_THAT(WhyNot(), HasSubstr(GetParam().why));
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedStateTest,
    ::testing::Values(Refused{"vdso_unmapped", ") has unmapped the kernel's vdso"},
                      Refused{"thread_proc_file", "/stat open, of a thread"},
                      Refused{"proc_folder", ") has the folder /proc/"},
                      Refused{"proc_working_folder", ") has the folder /proc/"},
                      Refused{"memfd_program", ") runs from memory (memfd)"},
                      Refused{"user_namespace", ") has a user namespace of its own"},
                      Refused{"pid_namespace", ") has a pid namespace of its own"},
                      Refused{"pid_namespace_for_children", ") has a pid namespace of its own"},
                      Refused{"network_namespace", ") has a network namespace of its own"},
                      Refused{"thread_namespace", ") has a thread that has a uts namespace of its own"},
                      Refused{"message_queue_open", ") has the POSIX message queue /q open"},
                      Refused{"message_queue_closed", "the POSIX message queue /q would be lost"},
                      Refused{"zombie_leader", ") has ended its first thread and not the others"},
                      Refused{"semaphore_undo",
                              ") may have System V semaphores to put back at its end (SEM_UNDO)"},
                      Refused{"multicast", ") gets what is sent to 239.1.2.3 (multicast)"},
                      Refused{"multicast6", ") gets what is sent to ff02::1234 (multicast)"},
                      Refused{"thread_working_folder", ") has a thread with a working folder of its own"},
                      Refused{"thread_descriptors", ") has a thread with descriptors of its own"},
                      Refused{"cgroup_file", "open, of its own cgroup"},
                      Refused{"deadline_scheduling", ") is scheduled by a deadline"},
                      Refused{"shell_with_jobs", ") is a shell with jobs on a terminal"},
                      Refused{"read_implies_exec", ") has a personality of its own (setarch: 00400000)"},
                      Refused{"packet_pipe", ") has a pipe of packets"},
                      Refused{"mptcp", ") has a socket of the kind MPTCP"},
                      Refused{"vsock", ") has a socket of the kind AF_VSOCK"},
                      Refused{"userfaultfd", ") uses userfaultfd"},
                      Refused{"landlock_rules", ") has rules of landlock open"},
                      Refused{"secret_memory", ") uses memory that even the kernel does not read"}),
    [](const auto& info) { return info.param.state; });

class QueuedStateTest : public StateTest, public ::testing::WithParamInterface<Refused> {};

TEST_P(QueuedStateTest, IsSeenWhenTheProcessesAreStopped) {
  Make(GetParam().state);
  if (IsSkipped()) return;
  EXPECT_EQ(WhyNot(), "") << "it may be read at any moment";
  EXPECT_THAT(FindQueued(InitPid()), HasSubstr(GetParam().why));
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr(GetParam().why));
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED).exit_code(), 0) << "it has all of it still";
}

INSTANTIATE_TEST_SUITE_P(
    Table, QueuedStateTest,
    ::testing::Values(
        Refused{"udp_queued", ") has not read the datagrams that have come to its socket (udp)"},
        Refused{"inotify_queued", ") has not read the events of files that it watches (inotify)"},
        Refused{"unix_sender", ") has not read the datagrams that have come to its Unix socket"},
        Refused{"unix_credentials_queued", "that tells the sender (SO_PASSCRED)"},
        Refused{"tcp_backlog", ") has not accepted a connection"}),
    [](const auto& info) { return info.param.state; });

class RestoredStateTest : public StateTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RestoredStateTest, IsThereAgain) {
  Make(GetParam());
  if (IsSkipped()) return;
  ASSERT_EQ(WhyNot(), "");
  EXPECT_EQ(CodeAfterRestore(GetParam()), 0) << ReadFile(output()).value_or("");
}

INSTANTIATE_TEST_SUITE_P(
    Table, RestoredStateTest,
    ::testing::Values("udp_socket", "inotify_watch", "unix_pair_queued", "unix_descriptor_queued",
                      "semaphores", "system_v_queue", "shared_memory_removed", "removed_file",
                      "mount_namespace", "thread_user", "affinity", "io_priority", "timer_slack",
                      "core_dump_filter", "nice", "scheduling_policy", "death_signal", "subreaper",
                      "no_new_privileges", "huge_pages_off", "keep_capabilities", "secure_bits", "oom_score",
                      "umask", "pending_signal", "interval_timer", "posix_timer", "locked_memory",
                      "not_inherited_memory", "sealed_memfd", "membarrier", "lease", "open_file_lock",
                      "process_lock", "flock", "signal_driven_io", "pipe_size", "socket_filter", "pidfd",
                      "unreaped_child", "own_proc_file", "personality", "address_randomization",
                      "eventfd_semaphore", "foreground_ended", "not_dumpable"),
    [](const auto& info) { return info.param; });

// What the criu that deploy/get-criu builds restores, and no other.
class NeedOfOursTest : public StateTest, public ::testing::WithParamInterface<Refused> {
 protected:
  TaskHostOptions Options(const std::string& node = "n1") const override {
    TaskHostOptions options = StateTest::Options(node);
    options.criu_path = criu_;
    return options;
  }
  void RestartHostWith(const std::string& criu) {
    criu_ = criu;
    host_.reset();
    StartHost();
  }
  std::string criu_;
};

TEST_P(NeedOfOursTest, IsNotDumpedByAnotherCriu) {
  Make(GetParam().state);
  if (IsSkipped()) return;
  EXPECT_THAT(WhyNotDumpable(InitPid(), {CriuKind::kAny, std::nullopt}), HasSubstr(GetParam().why));
}

TEST_P(NeedOfOursTest, IsRestoredByNoOtherCriuAndTheImageIsNotBlamed) {
  const std::string state = GetParam().state;
  const std::string another = AnotherCriu();
  if (another.empty()) GTEST_SKIP() << "needs the criu that deploy/get-criu builds";
  Make(state);
  if (IsSkipped()) return;
  Vacate("1.1");
  RestartHostWith(another);
  Restore(StateJob(state), "1.1");
  const v1::TaskReport report = AwaitPhase(v1::RESTORE_FAILED, 2);
  EXPECT_THAT(report.error(), HasSubstr(GetParam().why));
  EXPECT_THAT(report.error(), HasSubstr("the one that get-criu builds does"));
  EXPECT_TRUE(report.node_problem());
  EXPECT_FALSE(report.image_damaged() || report.image_refused());
  RestartHostWith("");
  Restore(StateJob(state), "1.1", 3, 300);
  AwaitPhase(v1::RUNNING, 3);
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 3).exit_code(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Table, NeedOfOursTest,
    ::testing::Values(Refused{"eventfd_semaphore", ") has an eventfd that counts as a semaphore"},
                      Refused{"personality", ") has a personality of its own"},
                      Refused{"foreground_ended", ") is on a terminal whose foreground group has ended"}),
    [](const auto& info) { return info.param.state; });

// So the planner suspends it only if it cannot be checkpointed, and not because it cannot.
TEST_F(StateTest, ATimerThatRunsOnIsReported) {
  Make("posix_timer");
  if (IsSkipped()) return;
  const v1::TaskReport report = host().Reports().at(0);
  EXPECT_THAT(report.timer(), HasSubstr(") has a POSIX timer on CLOCK_MONOTONIC"));
  EXPECT_EQ(report.cannot_checkpoint(), "");
}

TEST_F(StateTest, OfAJobWithoutTimersNoneIsReported) {
  Make("umask");
  if (IsSkipped()) return;
  EXPECT_EQ(host().Reports().at(0).timer(), "");
}

// Its processes are asked about what they have to put back: none of them has something after a restore.
TEST_F(StateTest, SemaphoresThatWereRestoredAreDumpedAgain) {
  Make("semaphores");
  if (IsSkipped()) return;
  Vacate("1.1");
  Restore(StateJob("semaphores"), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_EQ(WhyNot(2), "");
  OpenGate();
  EXPECT_EQ(AwaitPhase(v1::EXITED, 2).exit_code(), 0);
}

class LostStateTest : public StateTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(LostStateTest, IsNotThereAgain) {
  Make(GetParam());
  if (IsSkipped()) return;
  ASSERT_EQ(WhyNot(), "");
  EXPECT_EQ(CodeAfterRestore(GetParam()), 1)
      << "what is restored by now belongs into another row of the table";
}

INSTANTIATE_TEST_SUITE_P(Table, LostStateTest,
                         ::testing::Values("controlling_terminal", "session_keyring", "process_keyring",
                                           "tmpfile_named_later", "cpu_time", "memory_policy",
                                           "locked_future_memory", "sealed_mapping", "landlock",
                                           "directory_notification", "multicast_ttl", "same_page_merging",
                                           "no_code_from_data", "urgent_byte"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace siding
