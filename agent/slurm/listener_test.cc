#include "agent/slurm/listener.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"
#include "spank/messages.h"

namespace siding {
namespace {

constexpr char kRegistration[] =
    "siding-register 1\njob 42\nstep batch\ntask 0\ntasks 1\nuid 1\ngid 1\nrestarts 0\n";
constexpr char kAfterARequeue[] =
    "siding-register 1\njob 42\nstep batch\ntask 0\ntasks 1\nuid 1\ngid 1\nrestarts 1\n";

// Takes every task; its orders are ready when the test says so, or at once.
class FakeHost final : public TaskHost {
 public:
  absl::StatusOr<std::string> ExpectShim(const v1::ToAgent& command, const GpuAllocation& said,
                                         std::function<void(absl::Status)> when_ready) override {
    start = command;
    gpus = said;
    ready = std::move(when_ready);
    if (at_once) ready(absl::OkStatus());
    return folder;
  }
  absl::StatusOr<std::vector<ImageKey>> Images(v1::Tier tier) override {
    if (tier == v1::LOCAL) return local;
    return std::vector<ImageKey>{{CheckpointId("slurm-42.1"), 0}};
  }
  void Execute(const v1::ToAgent&) override {}
  std::vector<v1::TaskReport> Reports() override { return {}; }
  v1::Hello Describe() override { return {}; }
  v1::Heartbeat Measure() override { return {}; }

  absl::StatusOr<std::string> folder = "/tasks/42.1.0";
  bool at_once = false;
  absl::StatusOr<std::vector<ImageKey>> local = absl::FailedPreconditionError("this node has none");
  v1::ToAgent start;
  GpuAllocation gpus;
  std::function<void(absl::Status)> ready;
};

class Listener : public ::testing::Test {
 protected:
  Listener() {
    char name[] = "/tmp/siding-slurm-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/run/slurm.sock";
    auto listener = SlurmListener::Start(path_, host_);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    socket_ = Connect();
  }
  ~Listener() override {
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  UniqueFd Connect() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ReceivePatiently(fd.get());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  void Say(const std::string& text) {
    EXPECT_EQ(send(socket_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  // Empty at the end of the connection.
  std::string Hear() {
    char text[spank::kMaxMessage];
    const ssize_t size = recv(socket_.get(), text, sizeof text, 0);
    EXPECT_GE(size, 0);
    return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
  }

  FakeHost host_;
  std::string folder_, path_;
  std::unique_ptr<SlurmListener> listener_;
  UniqueFd socket_;
};

TEST_F(Listener, ATaskIsAcceptedAndGetsItsOrders) {
  Say(kRegistration);
  EXPECT_EQ(Hear(), "siding-accepted 1\nfolder /tasks/42.1.0\n");
  EXPECT_TRUE(host_.start.has_launch());
  host_.ready(absl::OkStatus());
  EXPECT_EQ(Hear(), "siding-go 1\n");
}

TEST_F(Listener, ThoseThatSayNothingHoldNobodyUp) {
  const UniqueFd first = std::move(socket_);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(Connect());
  socket_ = Connect();
  Say(kRegistration);
  EXPECT_EQ(Hear(), "siding-accepted 1\nfolder /tasks/42.1.0\n");
}

TEST_F(Listener, WhoTakesTimeIsListenedToThen) {
  UniqueFd first = std::move(socket_);
  socket_ = Connect();
  Say("hello\n");
  EXPECT_EQ(Hear().substr(0, 17), "siding-refused 1\n");
  socket_ = std::move(first);
  Say(kRegistration);
  EXPECT_EQ(Hear(), "siding-accepted 1\nfolder /tasks/42.1.0\n");
}

TEST_F(Listener, OfVeryManyThatSayNothingTheFirstIsHungUpOn) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 1024; ++i) silent.push_back(Connect());
  EXPECT_EQ(Hear(), "");
}

TEST_F(Listener, WhatIsSaidOfATasksGpusIsPassedOn) {
  Say(std::string(kRegistration) + "job-gpus 0,1\ngpu-devices 2,3\n");
  Hear();
  EXPECT_EQ(host_.gpus.list, "0,1");
  EXPECT_EQ(host_.gpus.devices, "2,3");
}

TEST_F(Listener, OrdersThatAreReadyAtOnceComeAfterTheAcceptance) {
  host_.at_once = true;
  Say(kRegistration);
  EXPECT_EQ(Hear(), "siding-accepted 1\nfolder /tasks/42.1.0\n");
  EXPECT_EQ(Hear(), "siding-go 1\n");
}

TEST_F(Listener, AfterARequeueTheTaskGoesOnFromItsCheckpoint) {
  Say(kAfterARequeue);
  Hear();
  EXPECT_EQ(host_.start.restore().checkpoint(), "slurm-42.1");
  EXPECT_EQ(host_.start.task().incarnation(), 2);
}

TEST_F(Listener, OrdersThatWillNotComeHaveAReason) {
  Say(kAfterARequeue);
  Hear();
  host_.ready(absl::DataLossError("pages are damaged"));
  EXPECT_EQ(Hear(), "siding-failed 1\nreason pages are damaged\n");
}

TEST_F(Listener, ATierThatCannotBeReadNowIsNoneThatIsEmpty) {
  host_.local = absl::UnavailableError("the disk is away");
  Say(kAfterARequeue);
  EXPECT_EQ(Hear(), "siding-refused 1\nreason the disk is away\n");
}

TEST_F(Listener, ARefusalHasAReason) {
  host_.folder = absl::AlreadyExistsError("it is here already");
  Say(kRegistration);
  EXPECT_EQ(Hear(), "siding-refused 1\nreason it is here already\n");
}

TEST_F(Listener, WhatIsNoRegistrationIsRefused) {
  Say("hello\n");
  EXPECT_EQ(Hear().substr(0, 17), "siding-refused 1\n");
  EXPECT_EQ(Hear(), "");
}

TEST_F(Listener, AnAgentThatEndsClosesTheConnection) {
  Say(kRegistration);
  Hear();
  host_.ready = nullptr;  // as the end of its task does
  EXPECT_EQ(Hear(), "");
}

TEST_F(Listener, TheSocketGoesWithIt) {
  listener_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(SlurmListenerStart, APathThatIsTooLongIsNamed) {
  FakeHost host;
  const std::string path = "/tmp/" + std::string(120, 'x');
  const auto listener = SlurmListener::Start(path, host);
  EXPECT_TRUE(absl::IsInvalidArgument(listener.status()));
  EXPECT_NE(std::string(listener.status().message()).find(path), std::string::npos);
}

}  // namespace
}  // namespace siding
