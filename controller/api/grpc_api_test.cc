// What is taken from callers who send nothing, or not all, over a server in this process.
#include "controller/api/grpc_api.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <deque>

#include "common/clock.h"
#include "common/message_limits.h"
#include "common/mutex.h"
#include "common/patience_for_test.h"
#include "controller/engine/fake_cluster.h"
#include "controller/identity/fake_identities.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

constexpr Duration kWithin = std::chrono::milliseconds(50);
constexpr Duration kForEver = std::chrono::hours(1);

// A call whose headers have been sent, and nothing else.
class Announced final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Announced(grpc::GenericStub& stub, const std::string& method) {
    stub.PrepareBidiStreamingCall(&context_, "/siding.v1.Siding/" + method, {}, this);
    AddHold();
    StartRead(&answer_);
    StartCall();
  }
  ~Announced() override {
    context_.TryCancel();
    Status();
  }
  void NothingFollows() { StartWritesDone(); }
  // Once nothing more is to be sent, gRPC says when it is over.
  bool HasEnded() {
    Release();
    MutexLock lock(mutex_);
    return done_;
  }
  grpc::Status Status() {
    Release();
    MutexLock lock(mutex_);
    EXPECT_TRUE(
        ended_.WaitFor(mutex_, kPatience, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; }));
    return status_;
  }
  void OnDone(const grpc::Status& status) override {
    MutexLock lock(mutex_);
    status_ = status;
    done_ = true;
    ended_.NotifyAll();
  }

 private:
  void Release() {
    if (!released_) RemoveHold();
    released_ = true;
  }

  grpc::ClientContext context_;
  grpc::ByteBuffer answer_;
  bool released_ = false;
  Mutex mutex_;
  CondVar ended_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

class GrpcApiTest : public testing::Test {
 protected:
  GrpcApiTest() { EXPECT_TRUE(engine_.Start().ok()); }
  ~GrpcApiTest() override {
    calls_.clear();
    server_->Shutdown();
  }
  void Serve(Duration within, const ServiceLimits& limits = {}) {
    grpc_api_ = std::make_unique<GrpcApi>(service_, identities_, limits, within);
    grpc::ServerBuilder builder;
    builder.RegisterService(grpc_api_.get());
    server_ = builder.BuildAndStart();
    stub_ = std::make_unique<grpc::GenericStub>(server_->InProcessChannel({}));
  }
  // Of the calls, as soon as there is one.
  grpc::Status FirstToEnd() {
    const auto ended = [&] { return std::ranges::find_if(calls_, &Announced::HasEnded); };
    EXPECT_TRUE(Eventually([&] { return ended() != calls_.end(); }));
    return ended() != calls_.end() ? ended()->Status() : grpc::Status();
  }
  Announced& Announce(const std::string& method) { return calls_.emplace_back(*stub_, method); }

  FakeIdentities identities_;  // ada
  FakeClock clock_{FromMicros(1)};
  std::unique_ptr<Journal> journal_ = NewMemoryJournal();
  std::unique_ptr<Platform> platform_ = NewStandalonePlatform();
  FakeCluster cluster_{clock_};
  Engine engine_{Policy{}, *journal_, *platform_, cluster_, clock_};
  PolicyWatcher policy_{"", engine_, clock_};
  ApiService service_{engine_, policy_, {}};
  std::unique_ptr<GrpcApi> grpc_api_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::deque<Announced> calls_;
};

TEST_F(GrpcApiTest, NobodyIsHeardBeforeItIsKnownWhoHeIs) {
  identities_.user = absl::UnauthenticatedError("who is that?");
  Serve(kForEver);
  const grpc::Status status = Announce("Submit").Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status.error_message(), "who is that?");
}
TEST_F(GrpcApiTest, NorForAStreamOfAnswers) {
  identities_.user = absl::UnauthenticatedError("who is that?");
  Serve(kForEver);
  EXPECT_EQ(Announce("Events").Status().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}
TEST_F(GrpcApiTest, ARequestThatDoesNotComeIsGivenUp) {
  Serve(kWithin);
  EXPECT_FALSE(Announce("Submit").Status().ok());
}
TEST_F(GrpcApiTest, ACallWithoutARequestIsRefused) {
  Serve(kForEver);
  Announced& call = Announce("ListNodes");
  call.NothingFollows();
  EXPECT_EQ(call.Status().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}
// Of two that say nothing one has the only place, whichever came first, and the other is refused.
TEST_F(GrpcApiTest, OnlySoManyOfAUserMayBeOnTheirWay) {
  Serve(kForEver, {.arriving_calls_per_user = 1});
  Announce("ListNodes");
  Announce("ListNodes");
  EXPECT_THAT(FirstToEnd().error_message(), HasSubstr("limits.arriving_calls_per_user is 1"));
}
TEST_F(GrpcApiTest, ALongRequestIsRefusedWithTheLimit) {
  Serve(kForEver);
  v1::ListJobsRequest request;
  for (size_t i = 0; i < kMostFromUser; ++i) request.add_ids(1);
  v1::ListJobsResponse response;
  grpc::ClientContext context;
  const auto siding = v1::Siding::NewStub(server_->InProcessChannel({}));
  const grpc::Status status = siding->ListJobs(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("request: expected at most"));
}

}  // namespace
}  // namespace siding
