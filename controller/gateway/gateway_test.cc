#include "controller/gateway/gateway.h"

#include <atomic>
#include <deque>
#include <thread>

#include "controller/gateway/gateway_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// ---- The order of messages. ----

TEST_F(GatewayTest, AWelcomeSaysHowOftenToReport) {
  TestAgent agent(*server_);
  agent.Hello("n1");
  ASSERT_TRUE(agent.IsWelcomed());
  EXPECT_EQ(agent.welcome.heartbeat_interval_us(), 7'000'000);
}
TEST_F(GatewayTest, AWelcomeSaysWhichControllerItIs) {
  TestAgent agent(*server_);
  agent.Hello("n1");
  ASSERT_TRUE(agent.IsWelcomed());
  EXPECT_EQ(agent.welcome.epoch(), 5);
  EXPECT_EQ(agent.welcome.cluster(), 77);
}
TEST_F(GatewayTest, TheWelcomeComesBeforeTheCommandsThatTheHelloCaused) {
  events_.on_connected = [&](const NodeId& node) {
    Command(node.value(), 1);
    return absl::OkStatus();
  };
  TestAgent agent(*server_);
  agent.Hello("n1");
  EXPECT_TRUE(agent.IsWelcomed());
  EXPECT_EQ(agent.Read(), 1);
}
TEST_F(GatewayTest, CommandsKeepTheirOrder) {
  TestAgent agent(*server_);
  agent.Hello("n1");
  ASSERT_TRUE(agent.IsWelcomed());
  for (int op : {1, 2, 3}) Command("n1", op);
  for (int op : {1, 2, 3}) EXPECT_EQ(agent.Read(), op);
}
TEST_F(GatewayTest, MessagesKeepTheirOrder) {
  TestAgent agent(*server_);
  agent.Hello("n1");
  for (int op : {1, 2, 3}) agent.Answer(op);
  EXPECT_THAT(events_.Await(4), ElementsAre("+n1", "n1:1", "n1:2", "n1:3"));
}
TEST_F(GatewayTest, ACommandGoesToItsNodeOnly) {
  TestAgent first(*server_), second(*server_);
  first.Hello("n1");
  second.Hello("n2");
  ASSERT_TRUE(first.IsWelcomed() && second.IsWelcomed());
  Command("n1", 1);
  Command("n2", 2);
  EXPECT_EQ(second.Read(), 2);
}
TEST_F(GatewayTest, ACommandForANodeWithoutAnAgentIsDropped) {
  Command("n1", 1);
  TestAgent agent(*server_);
  agent.Hello("n1");
  ASSERT_TRUE(agent.IsWelcomed());
  Command("n1", 2);
  EXPECT_EQ(agent.Read(), 2);
}

// ---- Refusals. ----

TEST_F(GatewayTest, WhoMayNotServeIsRefusedUnheard) {
  identities_.agent = absl::PermissionDeniedError("not you");
  TestAgent agent(*server_);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::PERMISSION_DENIED);
}
TEST_F(GatewayTest, AnAgentOfOneNodeMaySpeakForIt) {
  identities_.agent = AgentIdentity{"the certificate of node n1", NodeId("n1")};
  TestAgent agent(*server_);
  agent.Hello("n1");
  EXPECT_TRUE(agent.IsWelcomed());
}
TEST_F(GatewayTest, AnAgentOfOneNodeMaySpeakForNoOther) {
  identities_.agent = AgentIdentity{"the certificate of node n1", NodeId("n1")};
  TestAgent agent(*server_);
  agent.Hello("n2");
  const grpc::Status end = agent.End();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(end.error_message(), "the certificate of node n1 may not speak for node n2");
}
TEST_F(GatewayTest, AnAgentWhoseCertificateIsRevokedIsCutOff) {
  TestAgent agent(*server_);
  agent.Hello("n1");
  ASSERT_TRUE(agent.IsWelcomed());
  identities_.agent = absl::UnauthenticatedError("its certificate has been revoked");
  gateway_.DropRevoked();
  ++identities_.version;
  gateway_.DropRevoked();  // it says nothing more, and reads nothing
  EXPECT_EQ(events_.Await(2).back(), "-n1");
  EXPECT_FALSE(agent.End().ok());
}
TEST_F(GatewayTest, WhatDoesNotBeginWithHelloIsRefused) {
  TestAgent agent(*server_);
  agent.Answer(1);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}
TEST_F(GatewayTest, AHelloWithoutANodeIsRefused) {
  TestAgent agent(*server_);
  agent.Hello("");
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// ---- Streams that say nothing. ----

class SilentAgents : public GatewayTest {
 protected:
  SilentAgents() { identities_.agent = AgentIdentity{"the certificate of node n1", NodeId("n1")}; }
};
// Two of six are refused, whichever, and the others are heard when they speak.
TEST_F(SilentAgents, SoManyOfANodeAreWaitedFor) {
  constexpr size_t kAgents = 6, kWaitedFor = 4;
  std::deque<TestAgent> agents;
  std::atomic<bool> refused[kAgents] = {};
  std::atomic<size_t> refusals = 0, welcomes = 0;
  std::vector<std::thread> readers;
  for (size_t i = 0; i < kAgents; ++i) {
    TestAgent& agent = agents.emplace_back(*server_);
    readers.emplace_back([&agent, &refused = refused[i], &refusals, &welcomes] {
      if (agent.IsWelcomed()) {
        ++welcomes;
      } else {
        refused = agent.End().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
        ++refusals;
      }
    });
  }
  EXPECT_TRUE(Eventually([&] { return refusals == kAgents - kWaitedFor; }));
  for (size_t i = 0; i < kAgents; ++i) {
    if (refused[i]) continue;
    const size_t before = welcomes;
    agents[i].Hello("n1", "ada", static_cast<int64_t>(i));
    EXPECT_TRUE(Eventually([&] { return welcomes > before; }));
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(welcomes, kWaitedFor);
}
TEST_F(SilentAgents, WhoHasSaidHelloIsNotOneOfThem) {
  for (int i = 0; i < 20; ++i) {
    TestAgent agent(*server_);
    agent.Hello("n1", "ada", i);
    EXPECT_TRUE(agent.IsWelcomed());
  }
}
class ImpatientGateway : public GatewayTest {
 protected:
  ImpatientGateway() : GatewayTest(std::chrono::milliseconds(1)) {}
};
TEST_F(ImpatientGateway, WhoSaysNothingIsNotWaitedForForEver) {
  TestAgent agent(*server_);
  EXPECT_EQ(agent.End().error_code(), grpc::StatusCode::CANCELLED);
}
// The clock stands still meanwhile.
TEST_F(GatewayTest, WhoDialsTooOftenIsRefusedForAWhile) {
  int dials = 0;
  const auto dial = [&] {
    TestAgent agent(*server_);
    agent.Hello("n1", "ada", ++dials);
    return agent.IsWelcomed() ? grpc::StatusCode::OK : agent.End().error_code();
  };
  grpc::StatusCode answer = grpc::StatusCode::OK;
  while (dials < 200 && answer == grpc::StatusCode::OK) answer = dial();
  EXPECT_EQ(answer, grpc::StatusCode::RESOURCE_EXHAUSTED);
  clock_.Advance(NodePace::kBurst);
  EXPECT_EQ(dial(), grpc::StatusCode::OK);
}

class RefusingEngine : public GatewayTest {
 protected:
  RefusingEngine() {
    events_.on_connected = [&](const NodeId& node) {
      Command(node.value(), 1);
      return absl::UnavailableError("disk is full");
    };
    agent_.Hello("n1");
  }
  TestAgent agent_{*server_};
};
TEST_F(RefusingEngine, TheAgentHearsNeitherAWelcomeNorACommand) { EXPECT_EQ(agent_.Read(), -1); }
TEST_F(RefusingEngine, TheAgentIsToldWhy) { EXPECT_EQ(agent_.End().error_message(), "disk is full"); }
TEST_F(RefusingEngine, TheEngineHearsNoMoreOfIt) {
  agent_.End();
  events_.on_connected = [](const NodeId&) { return absl::OkStatus(); };
  TestAgent again(*server_);
  again.Hello("n1");
  ASSERT_TRUE(again.IsWelcomed());
  again.HangUp();
  EXPECT_THAT(events_.Await(3), ElementsAre("+n1", "+n1", "-n1"));
}

// ---- A second connection of a node. ----

class ConnectedNode : public GatewayTest {
 protected:
  ConnectedNode() {
    first_.Hello("n1", "ada", 1);
    EXPECT_TRUE(first_.IsWelcomed());
  }
  TestAgent first_{*server_};
  TestAgent second_{*server_};
};
TEST_F(ConnectedNode, ALaterConnectionOfTheSameAgentEndsTheEarlierOne) {
  second_.Hello("n1", "ada", 2);
  EXPECT_EQ(first_.Read(), -1);
}
TEST_F(ConnectedNode, ALaterConnectionOfTheSameAgentGetsTheCommands) {
  second_.Hello("n1", "ada", 2);
  ASSERT_TRUE(second_.IsWelcomed());
  Command("n1", 1);
  EXPECT_EQ(second_.Read(), 1);
}
TEST_F(ConnectedNode, TheEngineHearsTheEndOfTheEarlierConnectionFirstAndOnce) {
  second_.Hello("n1", "ada", 2);
  ASSERT_TRUE(second_.IsWelcomed());
  first_.End();
  second_.Answer(1);
  EXPECT_THAT(events_.Await(4), ElementsAre("+n1", "-n1", "+n1", "n1:1"));
}
TEST_F(ConnectedNode, AnEarlierConnectionThatComesLateIsRefused) {
  second_.Hello("n1", "ada", 0);
  EXPECT_EQ(second_.End().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}
TEST_F(ConnectedNode, AnotherAgentIsRefused) {
  second_.Hello("n1", "bob", 2);
  EXPECT_THAT(second_.End().error_message(), HasSubstr("is another one running with the same name?"));
}
TEST_F(ConnectedNode, ARefusedAgentDoesNotDisturbTheFirst) {
  second_.Hello("n1", "bob", 2);
  second_.End();
  Command("n1", 1);
  EXPECT_EQ(first_.Read(), 1);
}
TEST_F(ConnectedNode, AnotherAgentIsWelcomeWhenTheFirstIsGone) {
  first_.HangUp();
  events_.Await(2);
  second_.Hello("n1", "bob", 1);
  EXPECT_TRUE(second_.IsWelcomed());
}

// ---- Ends. ----

TEST_F(ConnectedNode, AnAgentThatDoesNotReadItsCommandsIsCutOff) {
  // Some are under way, so more than may wait.
  for (int op = 1; op <= 2 * kMostWaiting; ++op) Command("n1", op);
  EXPECT_THAT(events_.Await(2), ElementsAre("+n1", "-n1"));
}
TEST_F(ConnectedNode, TheAgentIsToldThatTheControllerStops) {
  gateway_.CloseAll();
  EXPECT_EQ(first_.End().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace siding
