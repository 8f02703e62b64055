#include "controller/identity/local_listener.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

class LocalListenerTest : public testing::Test {
 protected:
  static constexpr int kPerUser = 10;

  LocalListenerTest() {
    char name[] = "/tmp/siding-socket-XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::permissions(folder_, std::filesystem::perms::all);
    listener_ = *LocalListener::Listen(path(), limits_, peers_, [this](int fd) {
      MutexLock lock(mutex_);
      accepted_.push_back(fd);
      changed_.NotifyAll();
    });
  }
  ~LocalListenerTest() override {
    listener_->Stop();
    for (int fd : accepted_) close(fd);
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return folder_ + "/s"; }

  // As user nobody: its connections are limited. The raw call changes this thread only.
  UniqueFd ConnectAsNobody() const {
    syscall(SYS_setresuid, -1, 65534, -1);
    UniqueFd fd = Connect();
    syscall(SYS_setresuid, -1, 0, -1);
    return fd;
  }

  UniqueFd Connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ReceivePatiently(fd.get());
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return UniqueFd();
    return fd;
  }

  // The descriptor of the n-th connection that was let in.
  int Accepted(size_t n) {
    MutexLock lock(mutex_);
    const bool came = changed_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return accepted_.size() > n; });
    EXPECT_TRUE(came) << "connection " << n;
    return came ? accepted_[n] : -1;
  }
  static std::string PeerOf(int fd) { return "fd:" + std::to_string(fd); }

  // The server hangs up: reading ends.
  static bool IsClosed(const UniqueFd& fd) {
    char byte;
    return read(fd.get(), &byte, 1) == 0;
  }

  std::string folder_;
  const ServiceLimits limits_{.connections_per_user = kPerUser};
  LocalIdentities peers_{limits_};
  std::unique_ptr<LocalListener> listener_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> accepted_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LocalListenerTest, TellsTheUidOfAnotherUsersProcess) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    const UniqueFd fd = Connect();
    char byte;
    _exit(read(fd.get(), &byte, 1) == 1 ? 0 : 1);  // until it has been looked at
  }
  const int fd = Accepted(0);
  const auto peer = peers_.Of(PeerOf(fd));
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_EQ(peer->uid, 65534u);
  EXPECT_EQ(peer->gid, 65534u);
  ASSERT_EQ(write(fd, "x", 1), 1);
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the other user's process";
  EXPECT_EQ(status, 0);
}

TEST_F(LocalListenerTest, KnowsNobodyWhoCameAnotherWay) {
  EXPECT_THAT(peers_.Of("ipv4:127.0.0.1:5").status().message(), HasSubstr("local socket"));
  EXPECT_FALSE(peers_.Of("fd:3").ok());
}

TEST_F(LocalListenerTest, ClosesWhatIsMoreThanAUserMayHave) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kPerUser; ++i) {
    clients.push_back(ConnectAsNobody());
    Accepted(i);
  }
  EXPECT_TRUE(IsClosed(ConnectAsNobody()));
}

TEST_F(LocalListenerTest, AClosedConnectionMakesRoomForAnother) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kPerUser; ++i) {
    clients.push_back(ConnectAsNobody());
    Accepted(i);
  }
  close(Accepted(7));
  const UniqueFd another = ConnectAsNobody();
  const int fd = Accepted(kPerUser);
  EXPECT_TRUE(peers_.Of(PeerOf(fd)).ok());
  MutexLock lock(mutex_);
  accepted_.erase(accepted_.begin() + 7);
}

TEST_F(LocalListenerTest, TwoListenersDoNotShareAPath) {
  EXPECT_THAT(LocalListener::Listen(path(), limits_, peers_, [](int) {}).status().message(),
              HasSubstr("in use"));
}

}  // namespace
}  // namespace siding
