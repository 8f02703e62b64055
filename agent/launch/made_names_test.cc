#include "agent/launch/made_names.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "agent/launch/folder_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(NamedSocketsTest, AreThoseWithSomethingBehindTheInode) {
  EXPECT_THAT(NamedSockets("Num       RefCount Protocol Flags    Type St Inode Path\n"
                           "0000000000000000: 00000003 00000000 00000000 0001 03  1658\n"
                           "0000000000000000: 00000002 00000000 00010000 0001 01 20001 /run/a b\n"
                           "0000000000000000: 00000002 00000000 00010000 0001 01    17 @abstract\n"),
              ElementsAre(Pair("17", ""), Pair("20001", "/run/a b")));
}

TEST(NamedSocketsTest, ALineFeedInANameHidesNothing) {
  EXPECT_THAT(NamedSockets("0000000000000000: 00000002 00000000 00010000 0001 01 20001 \n/x\n"),
              ElementsAre(Pair("20001", "")));
}

// A process of somebody's that has made something.
class Job {
 public:
  Job(const Account& user, const std::function<void()>& make) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (setgroups(0, nullptr) != 0 || setresgid(user.gid, user.gid, user.gid) != 0 ||
          setresuid(user.uid, user.uid, user.uid) != 0)
        _exit(1);
      make();
      (void)!write(ready[1], "", 1);
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

class MadeNamesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  std::string Path(const char* name) const { return folder_ / name; }
  absl::StatusOr<std::string> NamesOf(const std::function<void()>& make) const {
    const Job job(user_, make);
    return NamesMadeAnew(job.pid(), user_);
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

TEST_F(MadeNamesTest, ASocketWithANameIsOne) {
  EXPECT_THAT(*NamesOf([&] { Bind(Path("listener")); }), HasSubstr("has a socket with a name"));
}

TEST_F(MadeNamesTest, APairOfSocketsHasNone) {
  EXPECT_THAT(*NamesOf([] {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) _exit(1);
  }),
              IsEmpty());
}

TEST_F(MadeNamesTest, AListenerWhereItsUserCouldNotListenAgainIsRefused) {
  const Job job(user_, [&] { Bind(Path("listener")); });
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  const auto names = NamesMadeAnew(job.pid(), user_);
  EXPECT_THAT(std::string(names.status().message()), HasSubstr("listens at " + Path("listener") + ", which"));
}

TEST_F(MadeNamesTest, ADescriptorUnderWayIsOne) {
  EXPECT_THAT(*NamesOf([] {
    int pair[2];
    char data = 'x', control[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {&data, 1};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) _exit(1);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), pair, sizeof(int));
    if (sendmsg(pair[0], &message, 0) != 1) _exit(1);
  }),
              HasSubstr("has a socket with descriptors under way"));
}

TEST_F(MadeNamesTest, APipeWithANameIsOne) {
  EXPECT_THAT(*NamesOf([&] {
    if (mkfifo(Path("pipe").c_str(), 0600) != 0 || open(Path("pipe").c_str(), O_RDWR) < 0) _exit(1);
  }),
              HasSubstr("has the pipe " + Path("pipe")));
}

TEST_F(MadeNamesTest, FilesThatAreWatchedAreOne) {
  EXPECT_THAT(*NamesOf([] { (void)!inotify_init(); }), HasSubstr("watches files"));
}

TEST_F(MadeNamesTest, ARemovedFileIsOne) {
  EXPECT_THAT(*NamesOf([&] { OpenAndRemove(Path("scratch")); }),
              HasSubstr(Path("scratch") + " as its descriptor"));
}

TEST_F(MadeNamesTest, ARemovedFileThatIsMappedIsOne) {
  EXPECT_THAT(*NamesOf([&] {
    const int fd = open(Path("semaphore").c_str(), O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 4096) != 0 || mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) _exit(1);
    close(fd);
    if (unlink(Path("semaphore").c_str()) != 0) _exit(1);
  }),
              HasSubstr(Path("semaphore") + " as its mapping"));
}

TEST_F(MadeNamesTest, AFileThatIsThereIsNone) {
  EXPECT_THAT(*NamesOf([&] { (void)!open(Path("output").c_str(), O_RDWR | O_CREAT, 0600); }), IsEmpty());
}

TEST_F(MadeNamesTest, SharedMemoryWithoutAFileIsNone) {
  EXPECT_THAT(*NamesOf([] {
    (void)!memfd_create("a/b", 0);
    if (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
      _exit(1);
  }),
              IsEmpty());
}

TEST_F(MadeNamesTest, AFolderThatIsGoneAsWellIsPutIntoTheOneAbove) {
  const auto names = NamesOf([&] {
    if (mkdir(Path("below").c_str(), 0700) != 0) _exit(1);
    OpenAndRemove(Path("below/scratch"));
    if (rmdir(Path("below").c_str()) != 0) _exit(1);
  });
  EXPECT_TRUE(names.ok()) << names.status();
}

TEST_F(MadeNamesTest, WhatItsUserCouldNotPutThereIsRefused) {
  const Job job(user_, [&] { OpenAndRemove(Path("scratch")); });
  ASSERT_EQ(chmod(Path("").c_str(), 0755), 0);
  const auto names = NamesMadeAnew(job.pid(), user_);
  EXPECT_TRUE(absl::IsPermissionDenied(names.status()));
  EXPECT_THAT(std::string(names.status().message()), HasSubstr("could not put there again"));
}

TEST_F(MadeNamesTest, ForRootNobodyHasToLook) {
  const Account root = AccountOf(0, 0);
  const Job job(root, [&] { OpenAndRemove(Path("scratch")); });
  EXPECT_THAT(*NamesMadeAnew(job.pid(), root), IsEmpty());
}

}  // namespace
}  // namespace siding
