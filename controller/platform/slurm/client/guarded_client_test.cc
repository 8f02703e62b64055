#include "controller/platform/slurm/client/guarded_client.h"

#include "controller/platform/slurm/client/fake_client.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

class GuardedClientTest : public testing::Test {
 protected:
  GuardedClientTest() {
    auto fake = std::make_unique<FakeClient>();
    slurm_ = fake.get();
    slurm_->Add(1, JobPhase::kRunning);
    client_ = NewGuardedClient(std::move(fake), [this] { return guard_; });
  }

  absl::Status guard_;
  FakeClient* slurm_ = nullptr;
  std::unique_ptr<Client> client_;
};

TEST_F(GuardedClientTest, WhatIsAllowedIsDone) {
  EXPECT_TRUE(client_->Do(JobNumber(1), Verb::kSuspend).ok());
  EXPECT_EQ(slurm_->jobs[JobNumber(1)].phase, JobPhase::kSuspended);
}
TEST_F(GuardedClientTest, NothingIsChangedThatIsNot) {
  guard_ = absl::AbortedError("fenced");
  EXPECT_EQ(client_->Do(JobNumber(1), Verb::kSuspend), guard_);
  EXPECT_EQ(client_->Update(JobNumber(1), {}), guard_);
  EXPECT_EQ(client_->CreateReservation({}), guard_);
  EXPECT_EQ(client_->DeleteReservation("siding-1"), guard_);
  EXPECT_EQ(slurm_->orders, 0);
}
TEST_F(GuardedClientTest, LookingIsFree) {
  guard_ = absl::AbortedError("fenced");
  EXPECT_TRUE(client_->Jobs().ok());
}

}  // namespace
}  // namespace siding::slurm
