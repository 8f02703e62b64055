// sidingctl with several controllers, of which one is active.
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <filesystem>
#include <set>
#include <utility>

#include "cli/client.h"
#include "common/mutex.h"
#include "common/tls/endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "siding/v1/api.grpc.pb.h"

namespace siding::cli {
namespace {

// Answers, or does so only after it has gone away or stopped once, or stands by.
class Controller final : public v1::Siding::Service {
 public:
  enum class Manner { kActive, kStandsBy, kGoesAway, kStops };
  explicit Controller(Manner manner) : manner_(manner) {}

  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override {
    MutexLock lock(mutex_);
    if (manner_ == Manner::kStandsBy) return Answer(*context);
    keys_.insert(request->request_key());
    response->set_id(static_cast<int64_t>(keys_.size()));
    return Answer(*context);
  }
  grpc::Status Site(grpc::ServerContext* context, const v1::Empty*, v1::SiteInfo*) override {
    MutexLock lock(mutex_);
    return manner_ == Manner::kStandsBy ? Answer(*context) : grpc::Status::OK;
  }
  grpc::Status Kill(grpc::ServerContext* context, const v1::JobRef*, v1::Empty*) override {
    MutexLock lock(mutex_);
    ++kills_;
    return Answer(*context);
  }
  grpc::Status Events(grpc::ServerContext* context, const v1::EventsRequest* request,
                      grpc::ServerWriter<v1::Event>* writer) override {
    MutexLock lock(mutex_);
    if (manner_ == Manner::kStandsBy) return Answer(*context);
    for (int64_t seq = request->after_seq() + 1; seq <= request->after_seq() + 2; ++seq) {
      v1::Event event;
      event.set_seq(seq);
      writer->Write(event);
    }
    return Answer(*context);
  }
  int kills() {
    MutexLock lock(mutex_);
    return kills_;
  }

 private:
  grpc::Status Answer(grpc::ServerContext& context) {
    if (manner_ == Manner::kStandsBy) {
      context.AddTrailingMetadata(kStandsByMetadata, "1");
      return {grpc::StatusCode::UNAVAILABLE, "this controller stands by"};
    }
    const Manner before = std::exchange(manner_, Manner::kActive);
    if (before == Manner::kActive) return grpc::Status::OK;
    if (before == Manner::kStops) return grpc::Status::CANCELLED;
    return {grpc::StatusCode::UNAVAILABLE, "socket closed"};
  }

  Mutex mutex_;
  Manner manner_;
  std::set<std::string> keys_;
  int kills_ = 0;
};

using Manner = Controller::Manner;

class ControllersTest : public testing::Test {
 protected:
  ControllersTest() : folder_(mkdtemp(name_)) {}
  ~ControllersTest() override {
    for (auto& server : servers_) server->Shutdown();
    std::filesystem::remove_all(folder_);
  }
  // Lives until no call is served any more: a call that its caller has given up may be.
  Controller& Add(Manner manner) { return *controllers_.emplace_back(std::make_unique<Controller>(manner)); }
  // An address without a controller, then these.
  Client ClientOf(const std::vector<Controller*>& controllers) {
    std::string addresses = folder_ + "/nobody";
    for (Controller* controller : controllers) addresses += "," + Serve(*controller);
    return Client({.controller = addresses});
  }
  // Where it answers from now on.
  std::string Serve(Controller& controller) {
    std::string socket = folder_ + "/" + std::to_string(servers_.size());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(&controller);
    servers_.push_back(builder.BuildAndStart());
    return socket;
  }

  char name_[32] = "/tmp/siding-several-XXXXXX";
  const std::string folder_;
  std::vector<std::unique_ptr<Controller>> controllers_;
  std::vector<std::unique_ptr<grpc::Server>> servers_;
};

TEST_F(ControllersTest, TheActiveOneIsFound) {
  Controller& standby = Add(Manner::kStandsBy);
  Controller& active = Add(Manner::kActive);
  EXPECT_TRUE(ClientOf({&standby, &active}).Submit({}).ok());
}
TEST_F(ControllersTest, ASubmissionThatWasNotAnsweredIsMadeAgainUnderTheSameKey) {
  Controller& restarted = Add(Manner::kGoesAway);
  const auto submitted = ClientOf({&restarted}).Submit({});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->id(), 1);
}
TEST_F(ControllersTest, SoIsOneThatWasCancelledByAControllerThatStops) {
  Controller& restarted = Add(Manner::kStops);
  const auto submitted = ClientOf({&restarted}).Submit({});
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->id(), 1);
}
TEST_F(ControllersTest, EachSubmissionHasAKeyOfItsOwn) {
  Controller& active = Add(Manner::kActive);
  Client client = ClientOf({&active});
  EXPECT_EQ(client.Submit({})->id(), 1);
  EXPECT_EQ(client.Submit({})->id(), 2);
}
TEST_F(ControllersTest, WhatMayHaveBeenDoneIsNotDoneAgain) {
  Controller& restarted = Add(Manner::kGoesAway);
  const absl::Status status = ClientOf({&restarted}).Kill(7);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(restarted.kills(), 1);
}
TEST_F(ControllersTest, WhatTheOneThatStandsByHasNotDoneIs) {
  Controller& standby = Add(Manner::kStandsBy);
  Controller& active = Add(Manner::kActive);
  EXPECT_TRUE(ClientOf({&standby, &active}).Kill(7).ok());
  EXPECT_EQ(active.kills(), 1);
}
TEST_F(ControllersTest, WhereOnlyOneIsNamedThatStandsByThatIsSaid) {
  Client client({.controller = Serve(Add(Manner::kStandsBy))});
  const absl::Status status = client.Kill(7);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), folder_ + "/0: this controller stands by");
}
TEST_F(ControllersTest, EventsGoOnWhereTheyWere) {
  Controller& restarted = Add(Manner::kGoesAway);
  v1::EventsRequest request;
  request.set_follow(true);
  std::vector<int64_t> seen;
  const absl::Status status = ClientOf({&restarted}).Events(request, [&](const v1::Event& event) {
    seen.push_back(event.seq());
    return seen.size() < 6;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(ControllersTest, OneControllerIsAskedOnce) {
  Client client({.controller = Serve(Add(Manner::kGoesAway))});
  EXPECT_TRUE(absl::IsUnavailable(client.Submit({}).status()));
}
TEST_F(ControllersTest, OrIsWaitedForAndItsUserIsToldOnce) {
  for (const Manner manner : {Manner::kGoesAway, Manner::kStops}) {
    Client client({.controller = Serve(Add(manner))});
    int told = 0;
    ASSERT_TRUE(client.Outlast(std::chrono::hours(1), [&](const absl::Status&) { ++told; }).ok());
    EXPECT_TRUE(client.Submit({}).ok());
    EXPECT_EQ(told, 1);
  }
}
TEST_F(ControllersTest, ButNotIfItHasNeverAnswered) {
  Client client({.controller = folder_ + "/nobody"});
  EXPECT_TRUE(absl::IsUnavailable(client.Outlast(std::chrono::hours(1), [](const absl::Status&) {})));
}
TEST_F(ControllersTest, NorForEver) {
  Client client({.controller = Serve(Add(Manner::kGoesAway))});
  ASSERT_TRUE(client.Outlast(Duration(0), [](const absl::Status&) {}).ok());
  EXPECT_TRUE(absl::IsUnavailable(client.Submit({}).status()));
}
TEST_F(ControllersTest, EventsOfOneGoOnWhenItIsBack) {
  Client client({.controller = Serve(Add(Manner::kGoesAway))});
  ASSERT_TRUE(client.Outlast(std::chrono::hours(1), [](const absl::Status&) {}).ok());
  v1::EventsRequest request;
  request.set_follow(true);
  std::vector<int64_t> seen;
  const absl::Status status = client.Events(request, [&](const v1::Event& event) {
    seen.push_back(event.seq());
    return seen.size() < 4;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(seen, testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(ControllersTest, EachCanBeAskedAlone) {
  Client client = ClientOf({&Add(Manner::kActive), &Add(Manner::kStandsBy)});
  const auto answers = client.LookAtEach();
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_TRUE(absl::IsUnavailable(answers.at(folder_ + "/nobody")));
  EXPECT_TRUE(answers.at(folder_ + "/0").ok());
  EXPECT_TRUE(answers.at(folder_ + "/1").ok());
}

}  // namespace
}  // namespace siding::cli
