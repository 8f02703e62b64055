#include "spank/ask.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/patience_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spank/connect.h"

namespace siding::spank {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1795262340'000000;  // 2026-11-21T11:59:00Z
constexpr int kLong = std::chrono::milliseconds(kPatience).count();
constexpr char kMarkOfNoon[] = "[siding start-by=2026-11-21T12:00:00.000000Z]";

// A Slurm command's options.
using Fake = std::map<std::string, std::string>;
bool IsSet(void* options, const char* name) { return static_cast<Fake*>(options)->count(name) != 0; }
char* Get(void* options, const char* name) { return static_cast<Fake*>(options)->at(name).data(); }
int Take(void* options, const char* name, const char* value, bool) {
  (*static_cast<Fake*>(options))[name] = value;
  return 0;
}
int TakeNothing(void*, const char*, const char*, bool) { return -1; }

class Ask : public ::testing::Test {
 protected:
  Ask() {
    char name[] = "/tmp/siding-ask-XXXXXX";
    folder_ = mkdtemp(name);
    path_ = folder_ + "/socket";
    command_ = {&given_, IsSet, Get, Take};
    options_.start_within_us = 60'000'000;
  }
  ~Ask() override { std::filesystem::remove_all(folder_); }

  // A controller's socket. Without Serve() it takes connections and is silent.
  int Listen() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 1), 0);
    return fd;
  }
  // Asks a controller that answers so; an empty answer is the end of the connection.
  AskResult AskOneThatSays(const std::string& answer) {
    const int listening = Listen();
    std::thread controller([&] {
      char text[kMaxMessage];
      const int fd = accept(listening, nullptr, nullptr);
      question_.assign(text, static_cast<size_t>(std::max<ssize_t>(recv(fd, text, sizeof text, 0), 0)));
      if (!answer.empty()) send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
      close(fd);
    });
    const AskResult result = AskAndMark(options_, kNow, command_, (before_ + path_).c_str(), kLong);
    controller.join();
    close(listening);
    return result;
  }
  AskResult AskNobody() { return AskAndMark(options_, kNow, command_, path_.c_str()); }

  std::string folder_, path_, question_;
  std::string before_;  // sockets that are asked before that one
  Fake given_;
  SlurmCommand command_;
  Options options_;
};

TEST_F(Ask, TheDeadlineIsATimeOfItsOwn) {
  AskOneThatSays("siding-promised 1\nstarts-us 1\n");
  EXPECT_EQ(question_, "siding-question 1\nstart-by-us 1795262400000000\n");
}

TEST_F(Ask, TheControllerIsToldWhatTheJobAsksFor) {
  given_ = {{"nodes", "2"}, {"mem", "5G"}, {"comment", "mine"}, {"export", "ALL"}};
  AskOneThatSays("siding-promised 1\nstarts-us 1\n");
  EXPECT_EQ(question_, "siding-question 1\nstart-by-us 1795262400000000\noption nodes 2\noption mem 5G\n");
}

TEST_F(Ask, AJobForLaterSaysWhen) {
  setenv("TZ", "UTC", 1);
  tzset();
  given_ = {{"begin", "2026-11-21T11:59:30"}};
  AskOneThatSays("siding-promised 1\nstarts-us 1\n");
  EXPECT_EQ(question_, "siding-question 1\nstart-by-us 1795262400000000\nnot-before-us 1795262370000000\n");
}

TEST_F(Ask, APromisedJobIsMarked) {
  EXPECT_EQ(AskOneThatSays("siding-promised 1\nstarts-us 1\n").verdict, Verdict::kPromised);
  EXPECT_EQ(given_["comment"], kMarkOfNoon);
}

TEST_F(Ask, OfSeveralControllersTheOneThatAnswersIsAsked) {
  before_ = folder_ + "/nobody," + std::string(300, 'x') + ",";
  EXPECT_EQ(AskOneThatSays("siding-promised 1\nstarts-us 1\n").verdict, Verdict::kPromised);
}

TEST_F(Ask, TheUsersOwnCommentStandsBehindTheMark) {
  given_["comment"] = "my own";
  AskOneThatSays("siding-promised 1\nstarts-us 1\n");
  EXPECT_EQ(given_["comment"], std::string(kMarkOfNoon) + " my own");
}

TEST_F(Ask, APromiseOfAnotherDayHasItsDate) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_STREQ(AskOneThatSays("siding-promised 1\nstarts-us 1795348800000000\n").words,
               "the job is to start by 2026-11-22 12:00:00");
}

TEST_F(Ask, OneThatHasToWaitItsTurnIsToldSo) {
  const AskResult result = AskOneThatSays("siding-promised 1\nstarts-us 0\n");
  EXPECT_EQ(result.verdict, Verdict::kPromised);
  EXPECT_THAT(result.words, HasSubstr("cannot start in time"));
}

TEST_F(Ask, AJobOfWhichNothingCanBeSaidYetIsMarkedAndTheUserIsTold) {
  const AskResult result = AskOneThatSays("siding-undecided 1\nreason not heard of\n");
  EXPECT_EQ(result.verdict, Verdict::kUnanswered);
  EXPECT_THAT(result.words, HasSubstr("cannot say yet whether the job can start by then (not heard of)"));
  EXPECT_EQ(given_["comment"], kMarkOfNoon);
}

TEST_F(Ask, ARefusedJobIsNotMarked) {
  const AskResult result = AskOneThatSays("siding-refused 1\nreason not before noon\n");
  EXPECT_EQ(result.verdict, Verdict::kRefused);
  EXPECT_STREQ(result.words, "not before noon");
  EXPECT_EQ(given_.count("comment"), 0u);
}

TEST_F(Ask, WithoutAControllerTheJobIsMarkedAndTheUserIsTold) {
  const AskResult result = AskNobody();
  EXPECT_EQ(result.verdict, Verdict::kUnanswered);
  EXPECT_EQ(result.words, "the controller does not answer (" + path_ +
                              ": No such file or directory); the job waits its turn as any other");
  EXPECT_EQ(given_["comment"], kMarkOfNoon);
}

TEST_F(Ask, AControllerThatIsSilentIsNotWaitedForForEver) {
  const int listening = Listen();
  const AskResult result = AskAndMark(options_, kNow, command_, path_.c_str(), 10);
  close(listening);
  EXPECT_EQ(result.verdict, Verdict::kUnanswered);
  EXPECT_NE(std::string(result.words).find("it is silent"), std::string::npos) << result.words;
}

// Others fill the queue of those who want to ask: whoever asks waits for his turn in it.
TEST_F(Ask, AQueueThatIsFullIsWaitedFor) {
  const int listening = Listen();
  std::vector<int> crowd;
  for (int fd; (fd = Connect(path_.c_str(), 0)) >= 0;) crowd.push_back(fd);
  EXPECT_EQ(errno, EAGAIN);
  const std::string asker = "/proc/self/task/" + std::to_string(gettid()) + "/stat";
  std::thread controller([&] {
    const auto waits = [&asker] {
      std::string text;
      std::getline(std::ifstream(asker), text);
      return text.find(") S ") != std::string::npos;
    };
    EXPECT_TRUE(Eventually(waits));
    for (size_t i = 0; i < crowd.size(); ++i) close(accept(listening, nullptr, nullptr));
    pollfd ready = {listening, POLLIN, 0};
    if (poll(&ready, 1, kLong) != 1) return;
    char text[kMaxMessage];
    const int fd = accept(listening, nullptr, nullptr);
    EXPECT_GT(recv(fd, text, sizeof text, 0), 0);
    constexpr char kAnswer[] = "siding-promised 1\nstarts-us 1\n";
    send(fd, kAnswer, sizeof kAnswer - 1, MSG_NOSIGNAL);
    close(fd);
  });
  EXPECT_EQ(AskAndMark(options_, kNow, command_, path_.c_str(), kLong).verdict, Verdict::kPromised);
  controller.join();
  for (int fd : crowd) close(fd);
  close(listening);
}

TEST_F(Ask, AControllerThatHangsUpHasNotAnswered) {
  EXPECT_EQ(AskOneThatSays("").verdict, Verdict::kUnanswered);
}

TEST_F(Ask, AnAnswerOfAnotherVersionIsNone) {
  for (const char* answer : {"siding-promised 2\nstarts-us 1\n", "siding-go 1\n"}) {
    EXPECT_EQ(AskOneThatSays(answer).verdict, Verdict::kUnanswered) << answer;
    std::filesystem::remove(path_);
  }
}

TEST_F(Ask, ACommandThatCannotBeReadIsRefused) {
  command_.set = nullptr;
  EXPECT_EQ(AskNobody().verdict, Verdict::kRefused);
}

TEST_F(Ask, ACommandThatTakesNoCommentIsRefused) {
  command_.set = TakeNothing;
  EXPECT_EQ(AskNobody().verdict, Verdict::kRefused);
}

TEST_F(Ask, OptionsThatAreTooLongAreRefused) {
  given_["job-name"] = std::string(kMaxMessage, 'x');
  EXPECT_EQ(AskNobody().verdict, Verdict::kRefused);
}

TEST_F(Ask, ABeginThatCannotBeReadIsRefused) {
  given_["begin"] = "tomorrow";
  const AskResult result = AskNobody();
  EXPECT_EQ(result.verdict, Verdict::kRefused);
  EXPECT_NE(std::string(result.words).find("--begin"), std::string::npos);
}

TEST(SlurmCommand, AProcessThatIsNoneHasNone) { EXPECT_FALSE(CommandOfThisProcess().complete()); }

}  // namespace
}  // namespace siding::spank
