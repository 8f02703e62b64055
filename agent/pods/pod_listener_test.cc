#include "agent/pods/pod_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/packets.h"
#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

const StartingContainer kStarting = {"uid-1", "main", {"/run/runc", "c1", "/bundle"}};

class FakeOwner final : public ContainerOwner {
 public:
  absl::StatusOr<ContainerStart> OnStarting(const StartingContainer&) override {
    MutexLock lock(mutex_);
    ++asked_;
    changed_.NotifyAll();
    return answer_;
  }
  void OnMade(const StartingContainer&, const absl::StatusOr<pid_t>& made) override {
    MutexLock lock(mutex_);
    made_ = made;
    changed_.NotifyAll();
  }
  void Say(absl::StatusOr<ContainerStart> answer) {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }
  void AwaitAsked() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.WaitFor(mutex_, kPatience,
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_ > 0; }));
  }
  bool told() {
    MutexLock lock(mutex_);
    return made_.has_value();
  }
  absl::StatusOr<pid_t> AwaitMade() {
    MutexLock lock(mutex_);
    const bool told = changed_.WaitFor(
        mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return made_.has_value(); });
    EXPECT_TRUE(told);
    return told ? *made_ : absl::UnknownError("nothing was told");
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  absl::StatusOr<ContainerStart> answer_ ABSL_GUARDED_BY(mutex_) = ContainerStart{"/image"};
  std::optional<absl::StatusOr<pid_t>> made_ ABSL_GUARDED_BY(mutex_);
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
};

class PodListenerTest : public ::testing::Test {
 protected:
  PodListenerTest() {
    char name[] = "/tmp/siding-pods-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/run/pods.sock";
    auto listener = PodListener::Start(path_, starts_);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    starts_.Offer("uid-1", owner_);
  }
  ~PodListenerTest() override {
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  // The listener hears root alone.
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be listened to";
  }
  static int ConnectTo(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ReceivePatiently(fd);
    return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
  }
  UniqueFd Connect() const {
    UniqueFd fd(ConnectTo(path_));
    EXPECT_TRUE(fd.valid());
    return fd;
  }
  static void Say(const UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  static absl::StatusOr<ContainerStart> Hear(const UniqueFd& fd) {
    const auto text = ReceivePacket(fd.get(), kMostPodsMessage);
    if (!text.ok()) return text.status();
    return ParseStart(*text);
  }

  std::string folder_, path_;
  ContainerStarts starts_;
  FakeOwner owner_, other_;
  std::unique_ptr<PodListener> listener_;
};

TEST_F(PodListenerTest, AContainerIsAnsweredAndItsTaskHearsWhatBecameOfIt) {
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_EQ(Hear(runc)->image_folder, "/image");
  Say(runc, ToText(absl::StatusOr<pid_t>(4711)));
  EXPECT_EQ(owner_.AwaitMade().value_or(0), 4711);
}

TEST_F(PodListenerTest, WhyItWasNotMadeIsToldAsWell) {
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  Hear(runc).status().IgnoreError();
  Say(runc, ToText(absl::StatusOr<pid_t>(absl::InternalError("criu: no memory"))));
  EXPECT_EQ(owner_.AwaitMade().status(), absl::AbortedError("criu: no memory"));
}

TEST_F(PodListenerTest, OfWhoHangsUpBeforeHeSaysItItIsNotKnown) {
  {
    const UniqueFd runc = Connect();
    Say(runc, ToText(kStarting));
    EXPECT_TRUE(Hear(runc).ok());
  }
  EXPECT_TRUE(absl::IsUnavailable(owner_.AwaitMade().status()));
}

TEST_F(PodListenerTest, ARefusalHasItsReason) {
  owner_.Say(absl::FailedPreconditionError("the image is damaged"));
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_EQ(Hear(runc).status(), absl::FailedPreconditionError("the image is damaged"));
}

TEST_F(PodListenerTest, SeveralAreServedAtOnce) {
  owner_.Say(absl::UnavailableError("not yet"));
  const UniqueFd waits = Connect();
  Say(waits, ToText(kStarting));
  owner_.AwaitAsked();
  starts_.Offer("uid-2", other_);
  const UniqueFd second = Connect();
  StartingContainer starting = kStarting;
  starting.pod_uid = "uid-2";
  Say(second, ToText(starting));
  EXPECT_TRUE(Hear(second).ok());
  owner_.Say(ContainerStart{});
  starts_.Ring();
  EXPECT_EQ(Hear(waits)->image_folder, "");
}

TEST_F(PodListenerTest, WhoSaysNothingHoldsNobodyUp) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Connect());
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_TRUE(Hear(runc).ok());
}

TEST_F(PodListenerTest, MoreThanItServesAtOnceAreHungUpOn) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 512; ++i) silent.push_back(Connect());
  EXPECT_TRUE(absl::IsUnavailable(Hear(Connect()).status()));
}

TEST_F(PodListenerTest, NonsenseIsRefusedWithWhatWasExpected) {
  const UniqueFd runc = Connect();
  Say(runc, "hello\n");
  EXPECT_THAT(std::string(Hear(runc).status().message()), HasSubstr("siding-container 1"));
}

TEST_F(PodListenerTest, WhatIsTooLongIsRefused) {
  const UniqueFd runc = Connect();
  Say(runc, std::string(kMostPodsMessage + 1, 'x'));
  EXPECT_THAT(std::string(Hear(runc).status().message()), HasSubstr("at most"));
}

TEST_F(PodListenerTest, NonsenseInPlaceOfTheEndIsAnEndThatIsNotKnown) {
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_TRUE(Hear(runc).ok());
  Say(runc, "hello\n");
  EXPECT_FALSE(owner_.AwaitMade().ok());
}

TEST_F(PodListenerTest, WhoIsNotRootIsNotListenedTo) {
  // As it is where somebody has opened the way to it.
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  ASSERT_EQ(chmod((folder_ + "/run").c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setuid(kNobody) != 0) _exit(2);
    const int fd = ConnectTo(path_);
    if (fd < 0) _exit(3);
    SendPacket(fd, ToText(kStarting));
    char byte = 0;
    _exit(recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_TRUE(AwaitChild(child, status)) << "the end of the other user's process";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PodListenerTest, OnlyRootMayConnect) {
  struct stat about = {};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(PodListenerTest, WhoHangsUpWhileHeWaitsIsForgotten) {
  owner_.Say(absl::UnavailableError("not yet"));
  {
    const UniqueFd runc = Connect();
    Say(runc, ToText(kStarting));
    owner_.AwaitAsked();
  }
  // All that it serves at once can come again: the one before does not count.
  owner_.Say(ContainerStart{});
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_TRUE(Hear(runc).ok());
}

TEST_F(PodListenerTest, AnEndWhileOneWaitsIsToldToHim) {
  owner_.Say(absl::UnavailableError("not yet"));
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  owner_.AwaitAsked();
  listener_.reset();
  EXPECT_FALSE(Hear(runc).ok());
}

TEST_F(PodListenerTest, AnEndWhileAContainerIsMadeSaysNothingOfIt) {
  const UniqueFd runc = Connect();
  Say(runc, ToText(kStarting));
  EXPECT_TRUE(Hear(runc).ok());
  listener_.reset();
  EXPECT_FALSE(Hear(runc).ok());
  EXPECT_FALSE(owner_.told());
}

TEST_F(PodListenerTest, TheSocketGoesWithIt) {
  listener_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PodListenerTest, ASocketThatAnEarlierAgentLeftIsReplaced) {
  const std::string path = folder_ + "/left.sock";
  const auto left = ListenForPackets(path, 0600);
  ASSERT_TRUE(left.ok());
  const auto listener = PodListener::Start(path, starts_);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const UniqueFd runc(ConnectTo(path));
  Say(runc, ToText(kStarting));
  EXPECT_TRUE(Hear(runc).ok());
}

TEST(PodListenerStart, APathThatIsTooLongIsNamed) {
  ContainerStarts starts;
  const std::string path = "/tmp/" + std::string(120, 'x');
  const auto listener = PodListener::Start(path, starts);
  EXPECT_TRUE(absl::IsInvalidArgument(listener.status()));
  EXPECT_THAT(std::string(listener.status().message()), HasSubstr(path));
}

}  // namespace
}  // namespace siding
