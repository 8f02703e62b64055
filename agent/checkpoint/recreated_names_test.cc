#include "agent/checkpoint/recreated_names.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "agent/os/folder_for_test.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr int kReady = 3;

// A user's process that has made something.
class Job {
 public:
  Job(const Account& user, const std::function<void()>& make) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      // What a test runner left open (ctest its log) is not this process's own.
      if (dup2(ready[1], kReady) != kReady || syscall(SYS_close_range, kReady + 1, ~0U, 0) != 0) _exit(1);
      if (setgroups(0, nullptr) != 0 || setresgid(user.gid, user.gid, user.gid) != 0 ||
          setresuid(user.uid, user.uid, user.uid) != 0)
        _exit(1);
      make();
      (void)!write(kReady, "", 1);
      for (;;) pause();
    }
    close(ready[1]);
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Job() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class RecreatedNamesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  std::string Path(const char* name) const { return folder_ / name; }
  absl::Status CheckOf(const std::function<void()>& make) const {
    const Job job(user_, make);
    return CheckRecreatedNames(job.pid(), user_);
  }
  static void Bind(const std::string& name) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 1) != 0) _exit(1);
  }
  static void OpenAndRemove(const std::string& name) {
    if (open(name.c_str(), O_RDWR | O_CREAT, 0600) < 0 || unlink(name.c_str()) != 0) _exit(1);
  }

  const FolderForAll folder_;
  const Account user_ = AccountOf(kSomebody, kSomebody);
};

TEST_F(RecreatedNamesTest, AListenerMayListenAgain) {
  EXPECT_EQ(CheckOf([&] { Bind(Path("listener")); }), absl::OkStatus());
}

TEST_F(RecreatedNamesTest, NotWhereItsUserMayMakeNothingAnyMore) {
  const Job job(user_, [&] { Bind(Path("listener")); });
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  EXPECT_THAT(std::string(CheckRecreatedNames(job.pid(), user_).message()),
              HasSubstr("listens at " + Path("listener") + ", which its user could not do again"));
}

// Its name, in /proc/net/unix, is a line that says of another socket that it listens in a folder of root's.
TEST_F(RecreatedNamesTest, WhatOthersCallTheirSocketsSaysNothingOfIt) {
  int fd = -1;
  const Job job(user_, [&] {
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd != kReady + 1 && dup2(fd, kReady + 1) != kReady + 1) _exit(1);
  });
  struct stat info {};
  ASSERT_EQ(stat(absl::StrCat("/proc/", job.pid(), "/fd/", kReady + 1).c_str(), &info), 0);
  const std::string line =
      absl::StrCat("\n0000000000000000: 00000002 00000000 00010000 0001 01 ", info.st_ino, " /root/x");
  const Job other(AccountOf(kSomebody + 1, kSomebody + 1), [&] {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, line.data(), line.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + line.size());
    if (bind(socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&address), size) != 0) _exit(1);
  });
  ASSERT_THAT(*ReadFile("/proc/net/unix"), HasSubstr(absl::StrCat(info.st_ino, " /root/x")));
  EXPECT_EQ(CheckRecreatedNames(job.pid(), user_), absl::OkStatus());
}

TEST_F(RecreatedNamesTest, AlsoInANetworkOfItsOwn) {
  const Job job(user_, [&] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(1);
    Bind(Path("listener"));
  });
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  EXPECT_THAT(std::string(CheckRecreatedNames(job.pid(), user_).message()), HasSubstr("listens at"));
}

TEST_F(RecreatedNamesTest, ARemovedFileMayBePutBack) {
  EXPECT_EQ(CheckOf([&] { OpenAndRemove(Path("scratch")); }), absl::OkStatus());
}

TEST_F(RecreatedNamesTest, AlsoWhereItsFolderIsGoneAsWell) {
  EXPECT_EQ(CheckOf([&] {
              if (mkdir(Path("below").c_str(), 0700) != 0) _exit(1);
              OpenAndRemove(Path("below/scratch"));
              if (rmdir(Path("below").c_str()) != 0) _exit(1);
            }),
            absl::OkStatus());
}

TEST_F(RecreatedNamesTest, NotWhereItsUserMayPutNothing) {
  const Job job(user_, [&] { OpenAndRemove(Path("scratch")); });
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  const absl::Status status = CheckRecreatedNames(job.pid(), user_);
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("scratch") + " as its descriptor"));
}

TEST_F(RecreatedNamesTest, NorOneOfRoots) {
  ASSERT_TRUE(WriteFileAtomically(Path("library"), "code", 0644).ok());
  const Job job(user_, [&] {
    const int fd = open(Path("library").c_str(), O_RDONLY);
    if (mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED) _exit(1);
    close(fd);
  });
  ASSERT_EQ(unlink(Path("library").c_str()), 0);
  EXPECT_THAT(std::string(CheckRecreatedNames(job.pid(), user_).message()),
              HasSubstr(Path("library") + " as its mapping"));
}

TEST_F(RecreatedNamesTest, NorOneThatHasAnotherNameElsewhere) {
  EXPECT_TRUE(absl::IsPermissionDenied(CheckOf([&] {
    const int fd = open(Path("one").c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || mkdir(Path("folder").c_str(), 0700) != 0 ||
        link(Path("one").c_str(), Path("folder/other").c_str()) != 0 || unlink(Path("one").c_str()) != 0)
      _exit(1);
  })));
}

TEST_F(RecreatedNamesTest, OneThatHasAnotherNameThereIsOpenedByThat) {
  EXPECT_EQ(CheckOf([&] {
              const int fd = open(Path("one").c_str(), O_RDWR | O_CREAT, 0600);
              if (fd < 0 || link(Path("one").c_str(), Path("other").c_str()) != 0 ||
                  unlink(Path("one").c_str()) != 0)
                _exit(1);
            }),
            absl::OkStatus());
}

TEST_F(RecreatedNamesTest, SharedMemoryWithoutAFileIsNone) {
  EXPECT_EQ(
      CheckOf([] {
        (void)!memfd_create("a/b", 0);
        if (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
          _exit(1);
      }),
      absl::OkStatus());
}

TEST_F(RecreatedNamesTest, ASocketCanBeMappedToo) {
  EXPECT_EQ(CheckOf([] {
              const int fd = socket(AF_INET, SOCK_STREAM, 0);
              if (mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) _exit(1);
            }),
            absl::OkStatus());
}

TEST_F(RecreatedNamesTest, APipeOfAnothersThatIsOpenToOneSideOnlyIsRefused) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0604), 0);
  ASSERT_EQ(chmod(Path("pipe").c_str(), 0604), 0);
  EXPECT_THAT(
      std::string(CheckOf([&] { (void)!open(Path("pipe").c_str(), O_RDONLY | O_NONBLOCK); }).message()),
      HasSubstr("may not both read and write"));
}

TEST_F(RecreatedNamesTest, RootMayMakeEverything) {
  const Account root = AccountOf(0, 0);
  const Job job(root, [&] { OpenAndRemove(Path("scratch")); });
  EXPECT_EQ(CheckRecreatedNames(job.pid(), root), absl::OkStatus());
}

}  // namespace
}  // namespace siding
