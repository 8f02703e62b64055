#include "agent/checkpoint/held_files.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/aio_abi.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "agent/os/folder_for_test.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

// A user's process that was root before, as those are that CRIU restores.
class Restored {
 public:
  explicit Restored(const std::function<void()>& as_root) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      // What a test runner left open (ctest its log) is not this process's own.
      if (dup2(ready[1], kReady) != kReady || syscall(SYS_close_range, kReady + 1, ~0U, 0) != 0) _exit(1);
      as_root();
      if (setgroups(0, nullptr) != 0 || setresgid(kSomebody, kSomebody, kSomebody) != 0 ||
          setresuid(kSomebody, kSomebody, kSomebody) != 0)
        _exit(1);
      close(kReady);
      for (;;) pause();
    }
    close(ready[1]);
    char end;
    EXPECT_EQ(read(ready[0], &end, 1), 0);
    close(ready[0]);
  }
  ~Restored() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  absl::Status Check() const { return CheckHeldFiles(pid_, AccountOf(kSomebody, kSomebody)); }

  static constexpr int kReady = 3;  // its end: this process has become the user's

 private:
  pid_t pid_ = 0;
};

class HeldFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
    Make(folder_ / "roots", 0600, 0);
    Make(folder_ / "readable", 0644, 0);
    Make(folder_ / "own", 0400, kSomebody);
    ASSERT_TRUE(MakeDirectories(folder_ / "private", 0700).ok());
    Make(folder_ / "private/readable", 0644, 0);
    if (chdir("/") != 0) FAIL();
  }
  void Make(const std::string& path, int mode, uid_t owner) {
    ASSERT_TRUE(WriteFileAtomically(path, std::string(4096, 'x'), mode).ok());
    ASSERT_EQ(chown(path.c_str(), owner, owner), 0);
  }
  absl::Status WithOpen(const std::string& name, int flags) {
    return Restored([&] { (void)!open((folder_ / name).c_str(), flags); }).Check();
  }
  absl::Status WithMapped(const std::string& name, int flags) {
    return Restored([&] {
             const int fd = open((folder_ / name).c_str(), O_RDWR);
             (void)mmap(nullptr, 4096, PROT_READ | ((flags & MAP_SHARED) != 0 ? PROT_WRITE : 0), flags, fd,
                        0);
             close(fd);
           })
        .Check();
  }

  FolderForAll folder_;
};

TEST_F(HeldFilesTest, AProcessWithoutAnythingMayRun) {
  const absl::Status status = Restored([] {}).Check();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HeldFilesTest, PipesAndSocketsAreNobodysNames) {
  const absl::Status status = Restored([] {
                                int fds[2];
                                (void)!pipe(fds);
                                socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
                              }).Check();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HeldFilesTest, AnUnlinkedFileIsTheProcessOwn) {
  const absl::Status status = Restored([&] {
                                (void)!open((folder_ / "gone").c_str(), O_RDWR | O_CREAT, 0600);
                                unlink((folder_ / "gone").c_str());
                              }).Check();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(HeldFilesTest, AFileIsLookedForByTheNameThatItHasLeft) {
  const auto renamed = [&](const std::string& name, const std::string& other) {
    return Restored([&] {
             (void)!open((folder_ / name).c_str(), O_RDWR);
             (void)!link((folder_ / name).c_str(), (folder_ / other).c_str());
             unlink((folder_ / name).c_str());
           })
        .Check();
  };
  EXPECT_EQ(renamed("own", "own-2"), absl::OkStatus());
  EXPECT_THAT(std::string(renamed("roots", "roots-2").message()), HasSubstr("roots-2"));
}

TEST_F(HeldFilesTest, AFileThatIsClosedMeanwhileIsNotHeld) {
  const Restored process([&] {
    const pid_t parent = getpid();
    if (fork() == 0) {
      close(Restored::kReady);
      // First: it may only be told of its parent's end by one of the same user.
      if (setresuid(kSomebody, kSomebody, kSomebody) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
          getppid() != parent)
        _exit(1);
      for (;;) close(open((folder_ / "readable").c_str(), O_RDONLY));
    }
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(process.Check(), absl::OkStatus());
}

TEST_F(HeldFilesTest, AReadableFileMayBeRead) { EXPECT_TRUE(WithOpen("readable", O_RDONLY).ok()); }

TEST_F(HeldFilesTest, AReadableFileMayNotBeWritten) {
  EXPECT_TRUE(absl::IsPermissionDenied(WithOpen("readable", O_RDWR)));
}

TEST_F(HeldFilesTest, AnOwnersFileMayHaveBeenOpenedBeforeItWasClosed) {
  EXPECT_TRUE(WithOpen("own", O_RDWR).ok());
}

TEST_F(HeldFilesTest, ARootsFileIsRefusedAndNamed) {
  const absl::Status status = WithOpen("roots", O_RDONLY);
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has " + (folder_ / "roots") + " as its descriptor"));
}

// Restored by a call of its own, and by no name.
TEST_F(HeldFilesTest, ARingForAsynchronousReadsIsNoFile) {
  const absl::Status status = Restored([] {
                                aio_context_t context = 0;
                                if (syscall(SYS_io_setup, 4, &context) != 0) _exit(1);
                              }).Check();
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(HeldFilesTest, AMessageQueueIsCalledOne) {
  const absl::Status status = Restored([] {
                                if (mq_open("/siding-test", O_RDWR | O_CREAT, 0600, nullptr) < 0) _exit(1);
                              }).Check();
  mq_unlink("/siding-test");
  EXPECT_THAT(std::string(status.message()), HasSubstr("has the message queue /siding-test open"));
}

TEST_F(HeldFilesTest, AFileThatAnUpgradeHasReplacedAndKeptElsewhereIsSaidToBe) {
  const absl::Status status =
      Restored([&] {
        (void)!open((folder_ / "readable").c_str(), O_RDONLY);
        (void)!link((folder_ / "readable").c_str(), (folder_ / "private/backup").c_str());
        unlink((folder_ / "readable").c_str());
      }).Check();
  EXPECT_THAT(std::string(status.message()), HasSubstr((folder_ / "readable") + " as its descriptor"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("which was removed or replaced there"));
}

TEST_F(HeldFilesTest, AReadableFileOfAPrivateFolderIsRefused) {
  EXPECT_TRUE(absl::IsPermissionDenied(WithOpen("private/readable", O_RDONLY)));
}

TEST_F(HeldFilesTest, ARootsFileIsNotMapped) {
  EXPECT_THAT(std::string(WithMapped("roots", MAP_PRIVATE).message()), HasSubstr("as its mapping"));
}

TEST_F(HeldFilesTest, NorOneWrittenThroughAMapping) {
  EXPECT_TRUE(absl::IsPermissionDenied(WithMapped("readable", MAP_SHARED)));
}

TEST_F(HeldFilesTest, AReadableFileMayBeMapped) { EXPECT_TRUE(WithMapped("readable", MAP_PRIVATE).ok()); }

TEST_F(HeldFilesTest, APrivateFolderIsNoPlaceToWork) {
  const absl::Status status = Restored([&] { (void)!chdir((folder_ / "private").c_str()); }).Check();
  EXPECT_THAT(std::string(status.message()), HasSubstr("as its working folder"));
}

}  // namespace
}  // namespace siding
