// What a job is started with, and what it is kept from: looked at from outside, in /proc.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>

#include "agent/node/host_fixture.h"
#include "agent/os/processes.h"
#include "agent/task/json_file.h"
#include "agent/task/task_record.pb.h"
#include "common/files.h"

namespace siding {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class IsolationTest : public HostTest {
 protected:
  void SetUp() override {
    NeedCriu();
    if (IsSkipped()) return;
    // An agent with everything that a job is not to have.
    setenv("CREDENTIALS_DIRECTORY", "/run/credentials/secret", 1);
    setenv("SIDING_SECRET", "secret", 1);
    leaked_ = open("/dev/zero", O_RDONLY);
    signal(SIGPIPE, SIG_IGN);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    umask(0);
    StartHost();
  }
  ~IsolationTest() override {
    unsetenv("CREDENTIALS_DIRECTORY");
    unsetenv("SIDING_SECRET");
    if (leaked_ >= 0) close(leaked_);
    umask(022);
  }
  pid_t MainPid(int incarnation = 1) {
    const std::string task = absl::StrCat(tasks_folder(), "/", job_, ".", incarnation, ".0/task.json");
    const auto record = ReadJsonFile<agent::TaskRecord>(task);
    return record.ok() ? MainProcess(record->init().pid(), first_process()) : 0;
  }
  static std::string Status(pid_t pid, const std::string& key) {
    const std::string text = ReadFile(absl::StrCat("/proc/", pid, "/status")).value_or("");
    const size_t at = text.find("\n" + key + ":\t");
    if (at == std::string::npos) return "?";
    const size_t begin = at + key.size() + 3;
    std::string value = text.substr(begin, text.find('\n', begin) - begin);
    while (!value.empty() && value.back() == ' ') value.pop_back();
    return value;
  }
  static std::vector<std::string> Descriptors(pid_t pid) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(absl::StrCat("/proc/", pid, "/fd")))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  // "soft hard", as /proc has them.
  static std::string Limit(const std::string& pid, const std::string& name) {
    const std::string text = ReadFile("/proc/" + pid + "/limits").value_or("");
    const size_t at = text.find("\n" + name);
    std::istringstream line(at == std::string::npos ? "" : text.substr(at + 1 + name.size()));
    std::string soft, hard;
    line >> soft >> hard;
    return soft + " " + hard;
  }
  void ExpectIsolated(pid_t pid) {
    ASSERT_GT(pid, 0);
    const std::string ids = absl::StrCat(kUser, "\t", kUser, "\t", kUser, "\t", kUser);
    EXPECT_EQ(Status(pid, "Uid"), ids);
    EXPECT_EQ(Status(pid, "Gid"), ids);
    EXPECT_EQ(Status(pid, "Groups"), std::to_string(kUser));
    EXPECT_EQ(Status(pid, "Umask"), "0022");
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb", "SigBlk", "SigIgn", "SigCgt"})
      EXPECT_EQ(Status(pid, set), "0000000000000000") << set;
    EXPECT_THAT(Descriptors(pid), ElementsAre("0", "1", "2"));
    EXPECT_NE(getsid(pid), getsid(0));
    const std::string environment = ReadFile(absl::StrCat("/proc/", pid, "/environ")).value_or("");
    EXPECT_THAT(environment, HasSubstr("SIDING_JOB_ID="));
    EXPECT_THAT(environment, Not(HasSubstr("CREDENTIALS_DIRECTORY")));
    EXPECT_THAT(environment, Not(HasSubstr("SIDING_SECRET")));
  }

 private:
  int leaked_ = -1;
};

TEST_F(IsolationTest, AJobHasItsUsersRightsAndNothingOfTheAgents) {
  LaunchCounter(Somebodys());
  ExpectIsolated(MainPid());
}

TEST_F(IsolationTest, SoHasARestoredOne) {
  LaunchCounter(Somebodys());
  Vacate("1.1");
  Restore(Somebodys(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  ExpectIsolated(MainPid(2));
}

TEST_F(IsolationTest, LimitsAreThoseOfALogin) {
  LaunchCounter(Somebodys());
  const std::string pid = std::to_string(MainPid());
  EXPECT_EQ(Limit(pid, "Max core file size").substr(0, 2), "0 ");
  const std::string agents = Limit("self", "Max open files");
  EXPECT_EQ(Limit(pid, "Max open files"), "1024" + agents.substr(agents.find(' ')));
}

TEST_F(IsolationTest, AnOutputThatIsAPipeWithoutAReaderHoldsNobodyUp) {
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0666), 0);
  ASSERT_EQ(chmod(pipe.c_str(), 0666), 0);
  v1::JobSpec spec = Somebodys();
  spec.set_output(pipe);
  Launch(spec);
  EXPECT_THAT(AwaitPhase(v1::LAUNCH_FAILED).error(), HasSubstr("cannot open the output " + pipe));
}

// A user's folder that leads elsewhere when the job comes back: data is then a file of root's that looks like
// the job's own.
class DetourTest : public IsolationTest {
 protected:
  void MakeData(const std::string& folder, uid_t owner) {
    ASSERT_TRUE(MakeDirectories(folder).ok());
    const std::string data = folder + "/data";
    ASSERT_TRUE(WriteFileAtomically(data, owner == 0 ? "secret" : "public", 0600).ok());
    const timespec always[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, data.c_str(), always, 0), 0);
    ASSERT_EQ(chown(folder.c_str(), owner, owner), 0);
    ASSERT_EQ(chown(data.c_str(), owner, owner), 0);
  }
  void SetUp() override {
    IsolationTest::SetUp();
    if (IsSkipped()) return;
    MakeData(own_, kUser);
    MakeData(roots_, 0);
    LaunchCounter(Reader());
    Vacate("1.1");
    ASSERT_EQ(symlink(roots_.c_str(), link_.c_str()), 0);
  }
  v1::JobSpec Reader() { return Somebodys({"-r", own_ + "/data"}); }
  void Swap() { renameat2(AT_FDCWD, own_.c_str(), AT_FDCWD, link_.c_str(), RENAME_EXCHANGE); }
  bool HasRootsFile(pid_t pid) {
    struct stat secret {
    }, info{};
    stat((roots_ + "/data").c_str(), &secret);
    for (const std::string& fd : Descriptors(pid)) {
      if (stat(absl::StrCat("/proc/", pid, "/fd/", fd).c_str(), &info) == 0 && info.st_ino == secret.st_ino &&
          info.st_dev == secret.st_dev)
        return true;
    }
    return false;
  }

  const std::string own_ = folder_ + "/own", roots_ = folder_ + "/roots", link_ = folder_ + "/link";
};

TEST_F(DetourTest, ItsOwnFileIsGivenBack) {
  Restore(Reader(), "1.1");
  AwaitPhase(v1::RUNNING, 2);
  EXPECT_FALSE(HasRootsFile(MainPid(2)));
}

TEST_F(IsolationTest, WhatWouldNotBeGivenBackIsNotTaken) {
  const std::string data = folder_ + "/data";
  ASSERT_TRUE(WriteFileAtomically(data, "public", 0644).ok());
  LaunchCounter(Somebodys({"-r", data}));
  ASSERT_EQ(chmod(data.c_str(), 0600), 0);
  Dump(2, "1.1");
  EXPECT_THAT(AwaitFailure(2).error(), HasSubstr("it could not be restored: process"));
  AwaitMoreLines();
}

TEST_F(DetourTest, RootsFileIsNot) {
  Swap();
  Restore(Reader(), "1.1");
  EXPECT_THAT(AwaitPhase(v1::RESTORE_FAILED, 2).error(), HasSubstr("/own/data: Permission denied"));
  EXPECT_EQ(MainPid(2), 0);
}

TEST_F(DetourTest, NorIfTheLinkComesAndGoes) {
  std::atomic<bool> stop{false};
  std::thread flipper([&] {
    while (!stop) Swap();
  });
  for (int incarnation = 2; incarnation < 7; ++incarnation) {
    Restore(Reader(), "1.1", incarnation);
    const auto report = sink_.Await(Task(incarnation), [](const auto& r) {
      return r.phase() == v1::RUNNING || r.phase() == v1::RESTORE_FAILED;
    });
    if (report.phase() != v1::RUNNING) continue;
    EXPECT_FALSE(HasRootsFile(MainPid(incarnation)));
    v1::ToAgent kill = Command(900, incarnation);
    kill.mutable_kill();
    Order(kill);
    AwaitPhase(v1::EXITED, incarnation);
  }
  stop = true;
  flipper.join();
}

}  // namespace
}  // namespace siding
