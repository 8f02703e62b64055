#include "agent/checkpoint/shared_memory.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "agent/os/folder_for_test.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMark[] = "7.0";

// A process of somebody's that does as it is told, and then waits.
class Somebodys {
 public:
  explicit Somebodys(const std::function<void()>& act) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (setgroups(0, nullptr) != 0 || setresgid(kSomebody, kSomebody, kSomebody) != 0 ||
          setresuid(kSomebody, kSomebody, kSomebody) != 0)
        _exit(1);
      act();
      close(ready[1]);
      for (;;) pause();
    }
    close(ready[1]);
    char end;
    EXPECT_EQ(read(ready[0], &end, 1), 0);
    close(ready[0]);
  }
  ~Somebodys() { End(); }
  void End() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class SharedMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
    const UniqueFd probe(open((path() + ".probe").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    unlink((path() + ".probe").c_str());
    if (!probe.valid() || fsetxattr(probe.get(), "trusted.siding.task", "", 0, 0) != 0)
      GTEST_SKIP() << "/dev/shm takes no marks here";
  }
  void TearDown() override { unlink(path().c_str()); }

  const std::string& name() const { return name_; }
  std::string path() const { return "/dev/shm/" + name(); }
  // Makes it, and has it mapped.
  void MapNew(const std::string& content, int flags = O_RDWR) const {
    const int fd = open(path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0640);
    (void)!write(fd, content.data(), content.size());
    close(fd);
    MapOld(flags);
  }
  void MapOld(int flags = O_RDWR) const {
    const int fd = open(path().c_str(), flags);
    (void)mmap(nullptr, 4096, PROT_READ | (flags == O_RDWR ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    close(fd);
  }
  absl::StatusOr<std::vector<SharedMemoryFile>> Save(const Somebodys& process) {
    return SaveSharedMemory(process.pid(), user_, kMark, image_ / "", abandon_);
  }
  absl::Status PutBack(const std::vector<SharedMemoryFile>& files) {
    return PutSharedMemoryBack(files, image_ / "", user_, kMark);
  }
  std::string Content() const { return ReadFile(path()).value_or("nothing"); }
  void Write(const std::string& content, uid_t owner = kSomebody) {
    ASSERT_TRUE(WriteFileAtomically(path(), content, 0640).ok());
    ASSERT_EQ(chown(path().c_str(), owner, owner), 0);
  }

  const std::string name_ = "siding-test-" + std::to_string(getpid());
  FolderForAll image_;
  Account user_ = AccountOf(kSomebody, kSomebody);
  std::atomic<bool> abandon_{false};
};

TEST_F(SharedMemoryTest, ComesBackWhereItIsNot) {
  Somebodys process([&] { MapNew("semaphore"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok()) << files.status();
  process.End();
  unlink(path().c_str());
  ASSERT_TRUE(PutBack(*files).ok());
  EXPECT_EQ(Content(), "semaphore");
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  EXPECT_EQ(info.st_uid, kSomebody);
}

TEST_F(SharedMemoryTest, IsAsItWasAtTheCheckpoint) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  const UniqueFd later(open(path().c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(write(later.get(), "later on", 8), 8);
  EXPECT_TRUE(absl::IsFailedPrecondition(PutBack(*files)));  // it is open
}

TEST_F(SharedMemoryTest, WritesOverWhatTheJobLeft) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  ASSERT_EQ(truncate(path().c_str(), 100), 0);
  ASSERT_TRUE(PutBack(*files).ok());
  EXPECT_EQ(Content(), "then");
}

TEST_F(SharedMemoryTest, WritesOverNothingElse) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  Write("of another program of the user's");
  const absl::Status status = PutBack(*files);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
  EXPECT_EQ(Content(), "of another program of the user's");
}

TEST_F(SharedMemoryTest, LeavesNothingBehindIfOneCannotBe) {
  Somebodys process([&] { MapNew("then"); });
  auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  unlink(path().c_str());
  SharedMemoryFile second = files->front();
  second.image = "siding-shm-not-there.img";
  second.name += "-2";
  files->push_back(second);
  EXPECT_FALSE(PutBack(*files).ok());
  EXPECT_EQ(Content(), "nothing");
  EXPECT_NE(access((path() + "-2").c_str(), F_OK), 0);
}

TEST_F(SharedMemoryTest, LeavesTheNodeWithItsJob) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  RemoveSharedMemory(*files, user_, kMark);
  EXPECT_EQ(Content(), "then");  // while somebody has it
  process.End();
  RemoveSharedMemory(*files, user_, "8.0");
  EXPECT_EQ(Content(), "then");  // another job's
  RemoveSharedMemory(*files, user_, kMark);
  EXPECT_EQ(Content(), "nothing");
}

// glibc's way to make a named semaphore.
TEST_F(SharedMemoryTest, IsFoundByItsOtherName) {
  Somebodys process([&] {
    MapNew("semaphore");
    (void)!link(path().c_str(), (path() + "-real").c_str());
    unlink(path().c_str());
  });
  const auto files = Save(process);
  unlink((path() + "-real").c_str());
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ(files->front().name, name() + "-real");
}

TEST_F(SharedMemoryTest, DataThatIsOnlyReadStaysWhereItIs) {
  Somebodys process([&] { MapNew("a data set", O_RDONLY); });
  EXPECT_THAT(*Save(process), IsEmpty());
}

TEST_F(SharedMemoryTest, WhatIsAnothersStaysWhereItIs) {
  Write("another's", kAnother);
  chmod(path().c_str(), 0666);
  Somebodys process([&] { MapOld(); });
  EXPECT_THAT(*Save(process), IsEmpty());
}

TEST_F(SharedMemoryTest, WhatIsEmptyTakesNoRoom) {
  Somebodys process([&] {
    MapNew("begin");
    (void)!truncate(path().c_str(), 64 << 20);
  });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  struct stat info {};
  ASSERT_EQ(stat((image_ / files->front().image).c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 64 << 20);
  EXPECT_LT(info.st_blocks * 512, 4 << 20);
  process.End();
  ASSERT_TRUE(PutBack(*files).ok());
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_size, 64 << 20);
  EXPECT_LT(info.st_blocks * 512, 4 << 20);
}

TEST_F(SharedMemoryTest, MayBeAFileThatItsOwnerMayNotWrite) {
  Somebodys process([&] {
    MapNew("then");
    (void)!chmod(path().c_str(), 0444);
  });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok()) << files.status();
  process.End();
  ASSERT_EQ(truncate(path().c_str(), 100), 0);
  const absl::Status back = PutBack(*files);
  EXPECT_TRUE(back.ok()) << back;
  EXPECT_EQ(Content(), "then");
  RemoveSharedMemory(*files, user_, kMark);
  EXPECT_EQ(Content(), "nothing");
}

TEST_F(SharedMemoryTest, ComesBackAfterARestoreThatWasKilled) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  unlink(path().c_str());
  const pid_t killed = fork();
  if (killed == 0) {
    if (ArmFaults("shim.shared=kill", "", {}).ok()) (void)PutBack(*files);
    _exit(0);
  }
  int how = 0;
  ASSERT_TRUE(AwaitChild(killed, how)) << "the end of the restore";
  ASSERT_TRUE(WIFSIGNALED(how));
  const absl::Status back = PutBack(*files);
  EXPECT_TRUE(back.ok()) << back;
  EXPECT_EQ(Content(), "then");
}

TEST_F(SharedMemoryTest, IsNotWrittenOverAnotherUsers) {
  Somebodys process([&] { MapNew("then"); });
  const auto files = Save(process);
  ASSERT_TRUE(files.ok());
  process.End();
  // Another user's, with the mark that root would not give it, and open to all.
  Write("another's", kAnother);
  ASSERT_EQ(chmod(path().c_str(), 0666), 0);
  ASSERT_EQ(setxattr(path().c_str(), "trusted.siding.task", kMark, strlen(kMark), 0), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(PutBack(*files)));
  EXPECT_EQ(Content(), "another's");
}

TEST_F(SharedMemoryTest, IsNoLargerThanItsFolder) {
  Somebodys process([&] {
    MapNew("begin");
    (void)!truncate(path().c_str(), int64_t{1} << 50);
  });
  const absl::Status status = Save(process).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path()));
}

// To open it would wait for as long as /proc/sys/fs/lease-break-time says, and send the process a signal.
TEST_F(SharedMemoryTest, IsLeftAloneIfItHasALease) {
  Somebodys process([&] {
    const int fd = open(path().c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    sigset_t signals;  // that SIGIO stays, to be seen
    sigfillset(&signals);
    if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) _exit(1);
  });
  const absl::Status status = Save(process).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  const std::string signals = ReadFile(absl::StrCat("/proc/", process.pid(), "/status")).value_or("");
  EXPECT_THAT(signals, HasSubstr("SigPnd:\t0000000000000000"));
  EXPECT_THAT(signals, HasSubstr("ShdPnd:\t0000000000000000"));
}

TEST_F(SharedMemoryTest, IsGivenUpWhenTheDumpIs) {
  Somebodys process([&] { MapNew("then"); });
  abandon_ = true;
  EXPECT_TRUE(absl::IsCancelled(Save(process).status()));
}

TEST(SharedMemoryListTest, IsReadAsItWasWritten) {
  const std::vector<SharedMemoryFile> files = {{"sem.mp-1", "siding-shm-0.img", 32, 0600, {}}};
  const auto read = SharedMemoryFromJson(SharedMemoryToJson(files));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, files);
}

TEST(SharedMemoryListTest, NamesNothingOutsideOfItsFolders) {
  for (const std::string name : {"../etc/passwd", "", "..", "a/b"}) {
    EXPECT_TRUE(absl::IsDataLoss(
        SharedMemoryFromJson(SharedMemoryToJson({{name, "siding-shm-0.img", 1, 0600, {}}})).status()))
        << name;
    EXPECT_TRUE(
        absl::IsDataLoss(SharedMemoryFromJson(SharedMemoryToJson({{"x", name, 1, 0600, {}}})).status()))
        << name;
  }
  EXPECT_TRUE(absl::IsDataLoss(SharedMemoryFromJson("[{\"name\":1}]").status()));
}

}  // namespace
}  // namespace siding
