// What is asked of runc, with a script in its place: what becomes of calls that do not come back.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agent/os/processes.h"
#include "agent/pods/container_runtime.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// Verbs for which there is a file hang-VERB never come back; what they have started neither hears nor ends.
// With deaf-criu missing it ends as soon as runc has: so does a CRIU that is asked, and it undoes its work.
// With write-VERB what it has started writes pages, and hears nothing meanwhile: until it has a line from the
// named pipe of that name, or for ever if it is none.
constexpr char kScript[] = R"(#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --root) shift 2;; *) break;; esac; done
if [ -e "HERE/hang-$1" ]; then
  mkfifo HERE/life
  if [ -e HERE/deaf-criu ]; then
    setsid sh -c 'exec 4< HERE/life; echo $$ > HERE/criu; exec sleep 1000000' > /dev/null 2>&1 &
  else
    setsid sh -c 'exec 4< HERE/life; echo $$ > HERE/criu; cat <&4; : > HERE/undone' > /dev/null 2>&1 &
  fi
  exec 3> HERE/life  # when runc has ended, so has this
  wait
fi
if [ -e "HERE/write-$1" ]; then
  sh -c 'exec 2> /dev/null; echo $$ > HERE/criu
    if [ -p "$0" ]; then read -r line < "$0"; echo page >> HERE/pages; else while echo page >> HERE/pages; do :; done; fi' \
    "HERE/write-$1" > /dev/null 2>&1 &
  wait
fi
case $1 in
  state) echo '{"pid": 1, "status": "paused"}';;
  resume) [ ! -e HERE/fail-resume ] || { cat HERE/fail-resume >&2; exit 1; };;
esac
)";

class RuncTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/siding-runc-test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    ASSERT_TRUE(
        WriteFileAtomically(At("runc"), absl::StrReplaceAll(kScript, {{"HERE", folder_}}), 0755).ok());
    ASSERT_TRUE(MakeDirectories(At("root/c1")).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text = "") const {
    ASSERT_TRUE(WriteFileAtomically(At(name), text).ok());
  }
  std::string Read(const std::string& name) const { return ReadFile(At(name)).value_or("nothing"); }
  bool Exists(const std::string& name) const { return std::filesystem::exists(At(name)); }
  ContainerRef container() const { return {At("root"), "c1", At("bundle")}; }
  std::unique_ptr<ContainerRuntime> Runc(const RuncPatience& patience = {.usual = kPatience}) const {
    return NewRunc(At("runc"), "", patience);
  }
  void RememberCgroup(const std::string& hierarchy, const std::string& file) const {
    ASSERT_TRUE(MakeDirectories(At("group")).ok());
    Write("group/" + file);
    Write("root/c1/state.json",
          absl::StrCat(R"({"cgroup_paths": {")", hierarchy, R"(": ")", At("group"), "\"}}"));
  }
  pid_t AwaitCriu() const {
    EXPECT_TRUE(Eventually([&] { return std::atoi(Read("criu").c_str()) > 0; }));
    return std::atoi(Read("criu").c_str());
  }
  absl::Status Checkpoint(const RuncPatience& patience = {}) const {
    return Runc(patience)->Checkpoint(container(), At("image"), folder_, abandon_);
  }

  std::string folder_;
  std::atomic<bool> abandon_{false};
};

constexpr std::chrono::milliseconds kMoment{100};

TEST_F(RuncTest, ACheckpointThatIsGivenUpLeavesNoCriuThatDoesNotHear) {
  Write("hang-checkpoint");
  Write("deaf-criu");
  auto done = std::async(std::launch::async, [&] { return Checkpoint({.undo = kMoment}); });
  const pid_t criu = AwaitCriu();
  abandon_ = true;
  ASSERT_TRUE(Comes(done));
  EXPECT_TRUE(absl::IsAborted(done.get()));
  EXPECT_FALSE(ReadProcessStat(criu) && ReadProcessStat(criu)->state != 'Z');
}

TEST_F(RuncTest, CriuMayUndoWhatItHasBegun) {
  Write("hang-checkpoint");
  auto done = std::async(std::launch::async, [&] { return Checkpoint({.undo = kPatience}); });
  AwaitCriu();
  abandon_ = true;
  ASSERT_TRUE(Comes(done));
  EXPECT_TRUE(absl::IsAborted(done.get()));
  EXPECT_TRUE(Exists("undone"));
}

// A large image, or storage that is slow. What other calls and an undoing have of time says nothing of it.
TEST_F(RuncTest, ACriuThatWritesHasAllTheTimeOfACheckpoint) {
  constexpr std::chrono::microseconds kNone{1};
  ASSERT_EQ(mkfifo(At("write-checkpoint").c_str(), 0600), 0);
  auto done = std::async(std::launch::async, [&] {
    return Checkpoint({.usual = kNone, .checkpoint = 100 * kPatience, .undo = kNone});
  });
  AwaitCriu();
  Write("line", "go on\n");
  ASSERT_EQ(std::system(absl::StrCat("cat ", At("line"), " > ", At("write-checkpoint")).c_str()), 0);
  ASSERT_TRUE(Comes(done));
  EXPECT_TRUE(done.get().ok());
  EXPECT_EQ(Read("pages"), "page\n");
}

// Nobody wants its image any more, and it asks nobody before it has written all of it.
TEST_F(RuncTest, ACriuThatWritesIsEndedWhereItIsGivenUp) {
  Write("write-checkpoint");
  auto done = std::async(std::launch::async, [&] { return Checkpoint({.undo = kMoment}); });
  const pid_t criu = AwaitCriu();
  EXPECT_TRUE(Eventually([&] { return Exists("pages"); }));
  abandon_ = true;
  ASSERT_TRUE(Comes(done));
  EXPECT_TRUE(absl::IsAborted(done.get()));
  EXPECT_FALSE(ReadProcessStat(criu) && ReadProcessStat(criu)->state != 'Z');
}

TEST_F(RuncTest, ACheckpointDoesNotTakeForEver) {
  Write("hang-checkpoint");
  Write("deaf-criu");
  const absl::Status done = Checkpoint({.checkpoint = kMoment, .undo = kMoment});
  EXPECT_TRUE(absl::IsDeadlineExceeded(done)) << done;
}

TEST_F(RuncTest, AContainerIsThawedWithoutRuncWhereThatDoesNotAnswer) {
  for (const char* verb : {"state", "resume"}) {
    Write(absl::StrCat("hang-", verb));
    RememberCgroup("freezer", "freezer.state");
    EXPECT_TRUE(Runc({.usual = kMoment})->Resume(container()).ok()) << verb;
    EXPECT_EQ(Read("group/freezer.state"), "THAWED") << verb;
    std::filesystem::remove(At("life"));
    std::filesystem::remove(At(absl::StrCat("hang-", verb)));
  }
}

TEST_F(RuncTest, AContainerIsThawedWithoutRuncInTheOneHierarchyToo) {
  Write("fail-resume", "no memory");
  RememberCgroup("", "cgroup.freeze");
  EXPECT_TRUE(Runc()->Resume(container()).ok());
  EXPECT_EQ(Read("group/cgroup.freeze"), "0");
}

TEST_F(RuncTest, AContainerIsThawedWithoutRuncWhereThereIsNone) {
  std::filesystem::remove(At("runc"));
  RememberCgroup("freezer", "freezer.state");
  EXPECT_TRUE(Runc()->Resume(container()).ok());
  EXPECT_EQ(Read("group/freezer.state"), "THAWED");
}

TEST_F(RuncTest, WhereNothingThawsItThatIsSaid) {
  Write("fail-resume", "no memory");
  EXPECT_THAT(std::string(Runc()->Resume(container()).message()), HasSubstr("no memory"));
}

TEST_F(RuncTest, OfAContainerThatIsGoneNothingIsThawed) {
  Write("fail-resume", "container does not exist");
  RememberCgroup("freezer", "freezer.state");
  EXPECT_TRUE(absl::IsNotFound(Runc()->Resume(container())));
  EXPECT_EQ(Read("group/freezer.state"), "");
}

TEST_F(RuncTest, WithoutARuncItIsNotSaidThatThereIsNoContainer) {
  std::filesystem::remove(At("runc"));
  EXPECT_TRUE(absl::IsUnavailable(Runc()->IsPaused(container()).status()));
}

// What criu has restored does not end by itself.
TEST_F(RuncTest, OfARestoreOnlyCriuIsWaitedFor) {
  const pid_t runc = fork();
  ASSERT_GE(runc, 0);
  if (runc == 0) {
    const std::string script = absl::StrCat("sh -c 'echo $$ > ", At("criu"), "; exec sleep 1000000' & wait");
    execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    _exit(127);
  }
  const pid_t restored = AwaitCriu();
  auto done = std::async(std::launch::async, [&] { EndRunc(runc, RuncWork::kRestore, 100 * kPatience); });
  EXPECT_TRUE(Comes(done));
  EXPECT_FALSE(ReadProcessStat(restored) && ReadProcessStat(restored)->state != 'Z');
  EXPECT_EQ(waitpid(runc, nullptr, 0), runc);
}

}  // namespace
}  // namespace siding
