#include "controller/platform/slurm/submit/question_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "common/patience_for_test.h"
#include "gtest/gtest.h"
#include "spank/messages.h"

namespace siding::slurm {
namespace {

constexpr char kQuestion[] = "siding-question 1\nstart-by-us 7\noption nodes 2\n";
constexpr char kPromise[] = "siding-promised 1\nstarts-us 5\n";

class FakeAnswerer final : public Answerer {
 public:
  absl::StatusOr<Time> WhenWouldItStart(const Question& question) override {
    asked = question;
    ++times;
    return answer;
  }
  absl::StatusOr<Time> answer = FromMicros(5);
  Question asked;
  int times = 0;
};

UniqueFd Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ReceivePatiently(fd.get());
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return fd;
}

void Say(const UniqueFd& fd, const std::string& text) {
  EXPECT_EQ(send(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
}

// Empty at the end of the connection.
std::string Hear(const UniqueFd& fd) {
  char text[spank::kMaxMessage];
  const ssize_t size = recv(fd.get(), text, sizeof text, 0);
  EXPECT_GE(size, 0);
  return {text, static_cast<size_t>(std::max<ssize_t>(size, 0))};
}

class Listener : public ::testing::Test {
 protected:
  Listener() {
    char name[] = "/tmp/siding-ask-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/run/ask.sock";
    Start(std::chrono::minutes(1), 64);
  }
  ~Listener() override {
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start(Duration silence, size_t connections) {
    Start(QuestionListener::Limits{.silence = silence, .connections = connections});
  }
  void Start(const QuestionListener::Limits& limits) {
    listener_.reset();
    auto listener = QuestionListener::Start(path_, answerer_, limits);
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }
  std::string Ask(const std::string& text) {
    const UniqueFd fd = Connect(path_);
    Say(fd, text);
    return Hear(fd);
  }

  FakeAnswerer answerer_;
  std::string folder_, path_;
  std::unique_ptr<QuestionListener> listener_;
};

TEST_F(Listener, AQuestionIsAnswered) {
  EXPECT_EQ(Ask(kQuestion), kPromise);
  listener_.reset();
  EXPECT_EQ(answerer_.asked.start_by, FromMicros(7));
  EXPECT_EQ(answerer_.asked.options.at("nodes"), "2");
}

TEST_F(Listener, WhoAsksIsWhatTheKernelSays) {
  Ask(kQuestion);
  listener_.reset();
  EXPECT_EQ(answerer_.asked.uid, geteuid());
}

TEST_F(Listener, AnybodyMayAsk) {
  struct stat about = {};
  EXPECT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0666u);
}

TEST_F(Listener, ARefusalHasItsReason) {
  answerer_.answer = absl::FailedPreconditionError("not before noon");
  EXPECT_EQ(Ask(kQuestion), "siding-refused 1\nreason not before noon\n");
}

TEST_F(Listener, WhatIsNoQuestionIsRefused) {
  EXPECT_EQ(Ask("hello\n").substr(0, 17), "siding-refused 1\n");
  EXPECT_EQ(Ask(std::string(spank::kMaxMessage + 1, 'x')).substr(0, 17), "siding-refused 1\n");
  listener_.reset();
  EXPECT_EQ(answerer_.times, 0);
}

TEST_F(Listener, OneThatIsSilentHoldsNobodyUp) {
  const UniqueFd silent = Connect(path_);
  EXPECT_EQ(Ask(kQuestion), kPromise);
  Say(silent, kQuestion);
  EXPECT_EQ(Hear(silent), kPromise);
}

TEST_F(Listener, OneThatStaysSilentIsClosed) {
  Start(std::chrono::milliseconds(1), 64);
  EXPECT_EQ(Hear(Connect(path_)), "");
}

TEST_F(Listener, WhereTooManyAreSilentTheFirstOneIsClosed) {
  Start(std::chrono::minutes(1), 2);
  const UniqueFd first = Connect(path_), second = Connect(path_), third = Connect(path_);
  EXPECT_EQ(Hear(first), "");
  Say(second, kQuestion);
  EXPECT_EQ(Hear(second), kPromise);
}

TEST_F(Listener, AUserWhoConnectsTooOftenLosesHisOwnFirst) {
  Start({.silence = std::chrono::minutes(1), .connections_per_user = 2});
  const UniqueFd first = Connect(path_), second = Connect(path_), third = Connect(path_);
  EXPECT_EQ(Hear(first), "");
  Say(third, kQuestion);
  EXPECT_EQ(Hear(third), kPromise);
}

TEST_F(Listener, WhoAsksTooOftenIsToldToWait) {
  Start({.questions_per_user = 2, .window = std::chrono::hours(1)});
  Ask(kQuestion);
  EXPECT_EQ(Ask(kQuestion), kPromise);
  EXPECT_EQ(Ask(kQuestion), "siding-refused 1\nreason you have asked 2 times in 1h00m; ask again later\n");
}

TEST_F(Listener, LaterHeMayAskAgain) {
  Start({.questions_per_user = 1, .window = std::chrono::microseconds(0)});
  Ask(kQuestion);
  EXPECT_EQ(Ask(kQuestion), kPromise);
}

TEST_F(Listener, ItsEndClosesTheConnections) {
  const UniqueFd silent = Connect(path_);
  listener_.reset();
  char text;
  EXPECT_LE(recv(silent.get(), &text, 1, 0), 0);  // an error if it was never accepted
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST(QuestionListenerStart, APathThatIsTooLongIsNamed) {
  FakeAnswerer answerer;
  const std::string path = "/tmp/" + std::string(120, 'x');
  const auto listener = QuestionListener::Start(path, answerer);
  EXPECT_TRUE(absl::IsInvalidArgument(listener.status()));
  EXPECT_NE(std::string(listener.status().message()).find(path), std::string::npos);
}

}  // namespace
}  // namespace siding::slurm
