// Plans of orders by hand, as the API gives them.
#include "controller/api/calls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::HasSubstr;

class ActionCallsTest : public CallsTest {
 protected:
  ActionCallsTest() {
    clock_.Advance(std::chrono::hours(24));  // times count from 1970
    cluster_.Attach(engine_);
    cluster_.AddNode("n1");
  }
  JobId Submit(JobSpec spec, const Caller& caller) {
    spec.command = {"work"};
    spec.per_node.slots = 4;
    const auto submitted = engine_.Submit(caller, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    for (int i = 0; i < 3; ++i) {
      cluster_.Run();
      clock_.Advance(std::chrono::seconds(1));
      engine_.Tick();
    }
    cluster_.Run();
    return submitted.ok() ? submitted->id : JobId();
  }
  JobId Running(const Caller& caller) {
    JobSpec spec;
    spec.name = "train";
    spec.walltime = std::chrono::seconds(60);
    return Submit(spec, caller);
  }
  void Deadline(const Caller& caller) {
    JobSpec spec;
    spec.name = "steer";
    spec.kind = JobKind::kOnDemand;
    spec.start_by = clock_.Now() + std::chrono::minutes(10);
    Submit(spec, caller);
  }
  v1::ActionPlan PlanOf(const v1::ActionRequest& request, const ApiCall& call) {
    v1::ActionPlan plan;
    status_ = service_.PlanAction(call, &request, &plan);
    return plan;
  }
  static v1::ActionRequest Of(const char* verb, JobId job) {
    v1::ActionRequest request;
    request.set_verb(verb);
    request.set_job(job.value());
    return request;
  }
  std::string Message() const { return std::string(status_.message()); }

  const Caller ada_{1000, "ada", true}, bob_{1001, "bob", false};
  const ApiCall bobs_call_{{1001, 1001, "bob"}};
  absl::Status status_;
};

TEST_F(ActionCallsTest, APlanHasTheJobAndTheDeadlines) {
  const JobId job = Running(bob_);
  Deadline(bob_);
  const v1::ActionPlan plan = PlanOf(Of("kill", job), bobs_call_);
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(plan.verb(), "kill");
  EXPECT_EQ(plan.method(), v1::KILL);
  EXPECT_EQ(plan.job_name(), "train");
  EXPECT_EQ(plan.nodes(0), "n1");
  ASSERT_EQ(plan.deadlines_size(), 1);
  EXPECT_EQ(plan.deadlines(0).name(), "steer");
  EXPECT_LT(plan.deadlines(0).after_us(), plan.deadlines(0).before_us());
}

TEST_F(ActionCallsTest, DeadlinesOfOthersAreNotTold) {
  const JobId job = Running(bob_);
  Deadline(ada_);
  EXPECT_EQ(PlanOf(Of("kill", job), bobs_call_).deadlines_size(), 0);
  EXPECT_EQ(PlanOf(Of("kill", job), call_).deadlines_size(), 1);
}

TEST_F(ActionCallsTest, OthersHaveNoPlanOfIt) {
  const JobId job = Running(ada_);
  PlanOf(Of("vacate", job), bobs_call_);
  EXPECT_TRUE(absl::IsNotFound(status_));
}

TEST_F(ActionCallsTest, AnOrderIsRefusedIfItsPlanDoesNotHold) {
  const JobId job = Running(bob_);
  v1::JobRef order;
  order.set_id(job.value());
  order.set_if_unchanged(PlanOf(Of("kill", job), bobs_call_).sequence());
  Deadline(bob_);
  v1::Empty none;
  EXPECT_TRUE(absl::IsFailedPrecondition(service_.Kill(bobs_call_, &order, &none)));
  order.set_if_unchanged(PlanOf(Of("kill", job), bobs_call_).sequence());
  EXPECT_TRUE(service_.Kill(bobs_call_, &order, &none).ok());
}

TEST_F(ActionCallsTest, WhatAVerbDoesNotTakeIsRefused) {
  const JobId job = Running(ada_);
  v1::ActionRequest request = Of("hop", job);
  PlanOf(request, call_);
  EXPECT_THAT(Message(), HasSubstr("verb: expected suspend, checkpoint, vacate, migrate, kill or cordon"));
  request = Of("kill", job);
  request.set_tier(v1::LOCAL);
  PlanOf(request, call_);
  EXPECT_EQ(Message(), "tier: expected none for kill");
  request = Of("vacate", job);
  request.add_nodes("n1");
  PlanOf(request, call_);
  EXPECT_EQ(Message(), "nodes: expected none for vacate");
  request = Of("suspend", job);
  request.set_node("n1");
  PlanOf(request, call_);
  EXPECT_EQ(Message(), "node: expected none for suspend");
  PlanOf(Of("cordon", job), call_);
  EXPECT_EQ(Message(), "job: expected none for cordon");
}

}  // namespace
}  // namespace siding
