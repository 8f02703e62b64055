#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/link/link_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class NoTasks final : public TaskHost {
 public:
  void Execute(const v1::ToAgent&) override {}
  absl::StatusOr<std::string> ExpectShim(const v1::ToAgent&, const GpuAllocation&,
                                         std::function<void(absl::Status)>) override {
    return absl::UnimplementedError("no shims here");
  }
  absl::StatusOr<std::vector<ImageKey>> Images(v1::Tier) override { return std::vector<ImageKey>(); }
  std::vector<v1::TaskReport> Reports() override { return {}; }
  v1::Hello Describe() override { return {}; }
  v1::Heartbeat Measure() override { return {}; }
};

v1::FromAgent Receive(Stream& stream) {
  v1::FromAgent message;
  stream.Read(&message);
  return message;
}

void SendWelcome(Stream& stream, int64_t epoch = 0) {
  v1::ToAgent message;
  message.mutable_welcome()->set_epoch(epoch);
  message.mutable_welcome()->set_heartbeat_interval_us(3600LL * 1'000'000);
  stream.Write(message);
}

void SendCommand(Stream& stream, int64_t op) {
  v1::ToAgent message;
  message.set_op(op);
  message.mutable_resume();
  stream.Write(message);
}

grpc::Status Refuse(Stream& stream) {
  Receive(stream);
  return {grpc::StatusCode::FAILED_PRECONDITION, "not you"};
}

grpc::Status WelcomeAndLeave(Stream& stream) {
  Receive(stream);
  SendWelcome(stream);
  return grpc::Status::OK;
}

v1::FromAgent Report() {
  v1::FromAgent message;
  message.mutable_report();
  return message;
}

TEST_F(LinkTest, SaysHelloThenWhatWasReportedMeanwhileThenHeartbeats) {
  std::vector<v1::FromAgent::WhatCase> received;
  Play({[&](Stream& stream) {
    received.push_back(Receive(stream).what_case());
    link_.Send(Report());
    SendWelcome(stream);
    received.push_back(Receive(stream).what_case());
    received.push_back(Receive(stream).what_case());
    return grpc::Status::OK;
  }});
  EXPECT_THAT(received,
              ElementsAre(v1::FromAgent::kHello, v1::FromAgent::kReport, v1::FromAgent::kHeartbeat));
}

TEST_F(LinkTest, WhatIsReportedWithoutAConnectionIsDropped) {
  link_.Send(Report());
  std::vector<v1::FromAgent::WhatCase> received;
  Play({[&](Stream& stream) {
    received.push_back(Receive(stream).what_case());
    SendWelcome(stream);
    received.push_back(Receive(stream).what_case());
    return grpc::Status::OK;
  }});
  EXPECT_THAT(received, ElementsAre(v1::FromAgent::kHello, v1::FromAgent::kHeartbeat));
}

// The report of it may have been under way when the first connection ended.
TEST_F(LinkTest, WhatWasNotDeliveredIsSaidByTheNextHello) {
  std::vector<v1::TaskPhase> phases;
  const auto note_phase = [&](Stream& stream) {
    phases.push_back(Receive(stream).hello().tasks(0).phase());
    SendWelcome(stream);
    phase_ = v1::EXITED;
    return grpc::Status::OK;
  };
  Play({note_phase, note_phase});
  EXPECT_THAT(phases, ElementsAre(v1::RUNNING, v1::EXITED));
}

TEST_F(LinkTest, WhatWasLeftUnsentIsNotSentBehindTheNextHello) {
  std::vector<v1::FromAgent::WhatCase> received;
  Play({[&](Stream& stream) {
          Receive(stream);
          link_.Send(Report());
          return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "not you");
        },
        [&](Stream& stream) {
          received.push_back(Receive(stream).what_case());
          SendWelcome(stream);
          received.push_back(Receive(stream).what_case());
          return grpc::Status::OK;
        }});
  EXPECT_THAT(received, ElementsAre(v1::FromAgent::kHello, v1::FromAgent::kHeartbeat));
}

TEST_F(LinkTest, TheConnectionsOfAnAgentAreCounted) {
  std::vector<v1::Hello> hellos;
  const auto note_hello = [&](Stream& stream) {
    hellos.push_back(Receive(stream).hello());
    return grpc::Status::OK;
  };
  Play({note_hello, note_hello});
  EXPECT_EQ(hellos[0].agent(), hellos[1].agent());
  EXPECT_EQ(hellos[0].connection() + 1, hellos[1].connection());
}

TEST_F(LinkTest, CommandsAreExecutedInTheirOrder) {
  Play({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    for (int op : {1, 2, 3}) SendCommand(stream, op);
    AwaitCommands(3);  // what is unread when the connection ends is lost: the controller would send it again
    return grpc::Status::OK;
  }});
  link_.Stop();
  EXPECT_THAT(Executed(), ElementsAre(1, 2, 3));
}

TEST_F(LinkTest, TheLargestOrderThatASpecMakesIsReceived) {
  Play({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    v1::ToAgent command;
    command.set_op(1);
    command.mutable_launch()->mutable_spec()->add_command(std::string(5 << 20, 'x'));
    stream.Write(command);
    AwaitCommands(1);
    return grpc::Status::OK;
  }});
}

TEST_F(LinkTest, AnAnswerIsSentOnTheConnectionOfItsQuestion) {
  std::vector<int64_t> answered;
  Play({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    Receive(stream);  // the first heartbeat
    SendCommand(stream, 7);
    AwaitCommands(1);
    v1::FromAgent answer;
    answer.mutable_result()->set_op(7);
    link_.Send(answer);
    answered.push_back(Receive(stream).result().op());
    return grpc::Status::OK;
  }});
  EXPECT_THAT(answered, ElementsAre(7));
}

TEST_F(LinkTest, OnlyAWelcomeIsAnAcceptance) {
  Play({Refuse, Refuse, WelcomeAndLeave, Refuse});
  link_.Stop();
  std::vector<bool> welcomed = Welcomed();
  welcomed.resize(4);  // stopping ends one more
  EXPECT_THAT(welcomed, ElementsAre(false, false, true, false));
}

TEST_F(LinkTest, ACommandBeforeTheWelcomeIsNotExecuted) {
  Play({[](Stream& stream) {
    Receive(stream);
    SendCommand(stream, 1);
    Receive(stream);  // the agent hangs up
    return grpc::Status::OK;
  }});
  link_.Stop();
  EXPECT_FALSE(Welcomed()[0]);
  EXPECT_THAT(Executed(), IsEmpty());
}

TEST_F(LinkTest, AControllerOfAnEarlierEpochIsHungUpOnBeforeItIsObeyed) {
  epoch_ = 7;
  Play({[](Stream& stream) {
    Receive(stream);
    SendWelcome(stream, /*epoch=*/6);
    SendCommand(stream, 1);
    Receive(stream);  // the agent hangs up
    return grpc::Status::OK;
  }});
  link_.Stop();
  EXPECT_FALSE(Welcomed()[0]);
  EXPECT_THAT(Executed(), IsEmpty());
}

TEST(Link, ControllersAreDialledInTurn) {
  Mutex mutex;
  CondVar dialled;
  std::vector<int> turns;
  const auto controller = [&](int number) {
    return LinkTarget{"unix:/nonexistent/socket",
                      {},
                      [&, number]() -> absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> {
                        MutexLock lock(mutex);
                        turns.push_back(number);
                        dialled.NotifyAll();
                        return absl::UnavailableError("no");
                      }};
  };
  NoTasks host;
  Link link({{controller(1), controller(2)}, [](bool) { return Duration(0); }});
  link.Start(host);
  {
    MutexLock lock(mutex);
    EXPECT_TRUE(dialled.WaitFor(mutex, kPatience,
                                [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return turns.size() >= 4; }));
  }
  link.Stop();
  turns.resize(4);
  EXPECT_THAT(turns, ElementsAre(1, 2, 1, 2));
}

TEST_F(LinkTest, AControllerThatStartsLaterIsFound) {
  link_.Start(*this);
  AwaitPauses(1);
  Serve({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    SendCommand(stream, 1);
    AwaitCommands(1);
    return grpc::Status::OK;
  }});
  AwaitCommands(1);
}

TEST_F(LinkTest, AControllerThatDoesNotReadIsHungUpOn) {
  Serve({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    EXPECT_TRUE(Comes(moment_.get_future()));
    return grpc::Status::OK;
  }});
  link_.Start(*this);
  v1::FromAgent large = Report();
  large.mutable_report()->set_error(std::string(100'000, 'x'));
  EXPECT_TRUE(Eventually([&] {
    link_.Send(large);
    return !Welcomed().empty();
  }));
  moment_.set_value();
}

TEST_F(LinkTest, StopsWhileItIsConnected) {
  Serve({[&](Stream& stream) {
    Receive(stream);
    SendWelcome(stream);
    moment_.set_value();
    Receive(stream);  // a heartbeat
    Receive(stream);  // the agent hangs up
    return grpc::Status::OK;
  }});
  link_.Start(*this);
  EXPECT_TRUE(Comes(moment_.get_future()));
  link_.Stop();
  EXPECT_THAT(Welcomed(), testing::SizeIs(1));
}

// Something listens that takes the connection and never says a word.
TEST_F(LinkTest, StopsWhileItDials) {
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX};
  socket_.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  link_.Start(*this);
  ReceivePatiently(listener);
  const int mute = accept(listener, nullptr, nullptr);
  EXPECT_GE(mute, 0);
  link_.Stop();
  EXPECT_THAT(Welcomed(), ElementsAre(false));
  close(mute);
  close(listener);
}

TEST(Link, StopsWhileItPauses) {
  std::promise<void> pausing;
  Link link({{{"unix:/nonexistent/socket"}}, [&](bool) {
               pausing.set_value();
               return Duration(std::chrono::hours(1));
             }});
  NoTasks host;
  link.Start(host);
  EXPECT_TRUE(Comes(pausing.get_future()));
  link.Stop();
}

}  // namespace
}  // namespace siding
