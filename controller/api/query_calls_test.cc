// Which jobs and events a caller is shown.
#include "controller/api/calls_fixture.h"
#include "gmock/gmock.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class QueryCallsTest : public CallsTest {
 protected:
  int64_t Submit(const std::string& user) {
    JobSpec spec;
    spec.command = {"work"};
    spec.methods = {Method::kKill};
    spec.per_node.slots = 1;
    const auto submitted = engine_.Submit(Caller{1000, user, false}, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.ok() ? submitted->id.value() : 0;
  }
  std::vector<int64_t> Listed(const v1::ListJobsRequest& request) {
    v1::ListJobsResponse response;
    status_ = service_.ListJobs(call_, &request, &response);
    std::vector<int64_t> ids;
    for (const v1::Job& job : response.jobs()) ids.push_back(job.id());
    return ids;
  }
  std::vector<int64_t> InState(const std::string& state) {
    v1::ListJobsRequest request;
    request.add_states(state);
    return Listed(request);
  }
  std::vector<std::string> EventsSince(Time since) {
    v1::EventsRequest request;
    request.set_since_us(ToMicros(since));
    std::vector<std::string> kinds;
    status_ = service_.Events(call_, &request, [&](const v1::Event& event) {
      kinds.push_back(event.kind());
      return true;
    });
    return kinds;
  }

  absl::Status status_;
};

TEST_F(QueryCallsTest, JobsOfOneUser) {
  const int64_t first = Submit("ada");
  Submit("bob");
  v1::ListJobsRequest request;
  request.set_user("ada");
  EXPECT_THAT(Listed(request), ElementsAre(first));
}

TEST_F(QueryCallsTest, JobsInAState) {
  const int64_t job = Submit("ada");
  EXPECT_THAT(InState("pending"), ElementsAre(job));
  EXPECT_THAT(InState("running"), IsEmpty());
}

TEST_F(QueryCallsTest, OnesThatHaveEndedAreFoundByTheirState) {
  const int64_t job = Submit("ada");
  ASSERT_TRUE(engine_.Kill(Caller{1000, "ada", false}, JobId(job)).ok());
  EXPECT_THAT(InState("cancelled"), ElementsAre(job));
  EXPECT_THAT(InState("done"), IsEmpty());
}

TEST_F(QueryCallsTest, AnEndedJobIsShownWithWhatItRan) {
  const int64_t job = Submit("ada");
  ASSERT_TRUE(engine_.Kill(Caller{1000, "ada", false}, JobId(job)).ok());
  v1::ListJobsRequest request;
  request.add_ids(job);
  v1::ListJobsResponse response;
  ASSERT_TRUE(service_.ListJobs(call_, &request, &response).ok());
  EXPECT_THAT(response.jobs(0).spec().command(), ElementsAre("work"));
}

TEST_F(QueryCallsTest, WhoHoldsAJobIsShown) {
  const int64_t job = Submit("ada");
  v1::JobRef ref;
  ref.set_id(job);
  v1::Empty done;
  ASSERT_TRUE(service_.Hold(call_, &ref, &done).ok());
  engine_.Read([&](const ClusterState& state) {
    EXPECT_EQ(ShowJob(state, state.jobs.at(JobId(job))).held_by(), "user");
    EXPECT_EQ(ShowOthersJob(state, state.jobs.at(JobId(job))).held_by(), "");
  });
}

TEST_F(QueryCallsTest, AnUpdateToNonsenseNamesItsField) {
  v1::UpdateRequest request;
  request.set_id(Submit("ada"));
  const auto error = [&] {
    v1::Empty done;
    return std::string(service_.Update(call_, &request, &done).message());
  };
  EXPECT_EQ(error(), "priority, walltime: expected what is to be changed");
  request.set_walltime_us(5);
  EXPECT_THAT(error(), HasSubstr("walltime: expected 1s or more, got "));
  request.set_walltime_us(-5);
  EXPECT_THAT(error(), HasSubstr("walltime: expected a number from 0"));
  request.set_walltime_us(0);
  request.set_priority(2'000'000'000);
  EXPECT_THAT(error(), HasSubstr("priority: expected a number from -1000000"));
}

TEST_F(QueryCallsTest, WhatIsNoStateIsRefusedWithThoseThereAre) {
  InState("runing");
  EXPECT_EQ(status_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status_.message(), HasSubstr("state 'runing': expected pending, "));
}

TEST_F(QueryCallsTest, EventsSinceATime) {
  const int64_t job = Submit("ada");
  clock_.Advance(std::chrono::hours(1));
  const Time later = clock_.Now();
  ASSERT_TRUE(engine_.Kill(Caller{1000, "ada", false}, JobId(job)).ok());
  EXPECT_THAT(EventsSince(later), ElementsAre("cancelled"));
}

// So that events can be followed from now on, and a page knows whose it is.
TEST_F(QueryCallsTest, TheSiteSaysWhoAsksAndWhichEventIsTheNewest) {
  const auto site = [&](const UserIdentity& identity) {
    v1::SiteInfo info;
    EXPECT_TRUE(service_.Site({identity}, nullptr, &info).ok());
    return info;
  };
  const int64_t before = site({1001, 1001, "bob"}).newest_event();
  Submit("ada");
  EXPECT_GT(site({1001, 1001, "bob"}).newest_event(), before);
  EXPECT_EQ(site({1001, 1001, "bob"}).user(), "bob");
  EXPECT_FALSE(site({1001, 1001, "bob"}).is_operator());
  EXPECT_TRUE(site({1000, 1000, "ada"}).is_operator());
  EXPECT_TRUE(site({0, 0, "root"}).is_operator());
  EXPECT_EQ(site({kNobody, kNobody, "(page)"}).user(), "");
  EXPECT_FALSE(site({kNobody, kNobody, "(page)"}).is_operator());
}

TEST_F(QueryCallsTest, AFollowerIsGivenNothingMoreOnceItHasGone) {
  Submit("ada");
  Submit("ada");
  v1::EventsRequest request;
  request.set_follow(true);
  int taken = 0;
  EXPECT_TRUE(service_.Events(call_, &request, [&](const v1::Event&) { return ++taken < 2; }).ok());
  EXPECT_EQ(taken, 2);
}
// A page that comes back goes on from there, though nothing of it was for its reader's eyes.
TEST_F(QueryCallsTest, AStreamSaysHowFarTheControllerHasLookedToThoseWhoAskForIt) {
  Submit("ada");
  const auto marks = [&](bool wanted) {
    v1::EventsRequest request;
    request.set_marks(wanted);
    std::vector<int64_t> at;
    const auto note = [&](const v1::Event& event) {
      if (event.kind().empty()) at.push_back(event.seq());
      return true;
    };
    EXPECT_TRUE(service_.Events({{1001, 1001, "bob"}}, &request, note).ok());
    return at;
  };
  EXPECT_THAT(marks(true), ElementsAre(service_.NewestEvent()));
  EXPECT_THAT(marks(false), IsEmpty());
}
TEST_F(QueryCallsTest, AFollowerWhoseCallIsCancelledIsNotFollowedOn) {
  call_.cancelled = [] { return true; };
  v1::EventsRequest request;
  request.set_follow(true);
  EXPECT_TRUE(service_.Events(call_, &request, [](const v1::Event&) { return true; }).ok());
}
TEST_F(QueryCallsTest, AStrangerSeesNoJobs) {
  const int64_t job = Submit("ada");
  call_.identity = {1001, 1001, "bob"};
  EXPECT_THAT(Listed({}), IsEmpty());
  EXPECT_THAT(EventsSince(Time()), IsEmpty());
  v1::ListJobsRequest request;
  request.add_ids(job);
  Listed(request);
  EXPECT_EQ(status_.code(), absl::StatusCode::kNotFound);
}

class LimitedCallsTest : public QueryCallsTest {
 protected:
  ApiService limited_{engine_, policy_, {.waiting_calls_per_user = 1, .calls_per_user = 1}};
};

TEST_F(LimitedCallsTest, AUserFollowsSoManyTimes) {
  Submit("ada");
  const v1::EventsRequest request;
  absl::Status second;
  ASSERT_TRUE(limited_
                  .Events(call_, &request,
                          [&](const v1::Event&) {
                            second = limited_.Events(call_, &request, [](const v1::Event&) { return true; });
                            return false;
                          })
                  .ok());
  EXPECT_THAT(second.message(), HasSubstr("limits.waiting_calls_per_user is 1"));
}
TEST_F(LimitedCallsTest, AUserHasSoManyCalls) {
  const CallSlots::Slot first(limited_.calls(), 1000), second(limited_.calls(), 1000);
  EXPECT_TRUE(first.status.ok());
  EXPECT_THAT(second.status.message(), HasSubstr("limits.calls_per_user is 1"));
}

// Two jobs of ada's on a node each, and a request for which one of them would be killed.
class PlanCallsTest : public QueryCallsTest {
 protected:
  PlanCallsTest() {
    clock_.Advance(std::chrono::hours(1));
    cluster_.Attach(engine_);
    for (const char* node : {"a", "b"}) cluster_.AddNode(node, 1);
    first_ = Submit("ada");
    Settle();
    Submit("ada");
    Settle();
    request_.mutable_spec()->add_command("steer");
    request_.mutable_spec()->set_workdir("/");
    request_.mutable_spec()->set_output("/dev/null");
    request_.mutable_spec()->set_nodes(1);
    request_.mutable_spec()->mutable_per_node()->set_slots(1);
    request_.mutable_spec()->set_on_demand(true);
    request_.mutable_spec()->set_start_by_us(ToMicros(clock_.Now() + std::chrono::minutes(2)));
  }
  void Settle() {
    for (int i = 0; i < 5; ++i) {
      cluster_.Run();
      clock_.Advance(std::chrono::seconds(1));
      engine_.Tick();
    }
  }
  v1::Plan Planned() {
    v1::Plan plan;
    status_ = service_.PlanRequest(call_, &request_, &plan);
    return plan;
  }
  v1::ExplainResponse Explained(int64_t job, bool compare = false) {
    v1::ExplainRequest request;
    request.set_id(job);
    request.set_compare(compare);
    v1::ExplainResponse response;
    status_ = service_.Explain(call_, &request, &response);
    return response;
  }

  int64_t first_ = 0;
  v1::SubmitRequest request_;
};

// And not what changes all the time: whoever has the list would be told it anew each time.
TEST_F(PlanCallsTest, WhatTheyRunIsNotInABriefListNorTheirMemory) {
  v1::ListJobsRequest request;
  v1::ListJobsResponse whole, brief;
  ASSERT_TRUE(service_.ListJobs(call_, &request, &whole).ok());
  request.set_brief(true);
  ASSERT_TRUE(service_.ListJobs(call_, &request, &brief).ok());
  EXPECT_THAT(whole.jobs(0).spec().command(), ElementsAre("work"));
  EXPECT_GT(whole.jobs(0).memory(), 0);
  EXPECT_THAT(brief.jobs(0).spec().command(), IsEmpty());
  EXPECT_EQ(brief.jobs(0).memory(), 0);
  brief.mutable_jobs(0)->mutable_spec()->add_command("work");
  brief.mutable_jobs(0)->set_memory(whole.jobs(0).memory());
  EXPECT_EQ(brief.jobs(0).SerializeAsString(), whole.jobs(0).SerializeAsString())
      << "and nothing else is missing";
}

TEST_F(PlanCallsTest, AJobThatMadeWaySaysWhenItIsBackToThoseWhoMayAct) {
  request_.mutable_spec()->set_walltime_us(60'000'000);
  v1::SubmitResponse submitted;
  ASSERT_TRUE(service_.Submit(call_, &request_, &submitted).ok());
  Settle();
  const int64_t victim = submitted.plan().steps(0).job();
  Settle();
  const v1::Job job = Explained(victim).job();
  EXPECT_TRUE(status_.ok()) << status_.message();
  EXPECT_GT(job.back().predicted_us(), 0);
  EXPECT_EQ(job.back().because().kind(), v1::Back::WALLTIME);
  EXPECT_EQ(job.back().because().job(), submitted.id());
  EXPECT_FALSE(Explained(first_ == victim ? first_ + 1 : first_).job().has_back()) << "it runs";
}

class ReturnCallsTest : public QueryCallsTest {
 protected:
  int64_t Queue(const ApiCall& call, Duration walltime) {
    JobSpec spec;
    spec.command = {"work"};
    spec.methods = {Method::kKill};
    spec.per_node.slots = 1;
    spec.walltime = walltime;
    const auto submitted =
        engine_.Submit(Caller{call.identity.uid, call.identity.user, false}, std::move(spec));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.ok() ? submitted->id.value() : 0;
  }
  // As its caller sees it.
  v1::Back::Because WhyOf(int64_t job, const ApiCall& call) {
    v1::ListJobsRequest request;
    request.add_ids(job);
    v1::ListJobsResponse response;
    status_ = service_.ListJobs(call, &request, &response);
    return response.jobs_size() == 1 ? response.jobs(0).back().because() : v1::Back::Because();
  }
};

TEST_F(ReturnCallsTest, WhoIsAheadIsNamedToThoseWhoMaySeeIt) {
  clock_.Advance(std::chrono::hours(1));
  cluster_.Attach(engine_);
  cluster_.AddNode("a", 1);
  const int64_t runs = Queue(call_, std::chrono::minutes(1));
  for (int i = 0; i < 3; ++i) {
    cluster_.Run();
    clock_.Advance(std::chrono::seconds(1));
    engine_.Tick();
  }
  const ApiCall bob{{1001, 1001, "bob"}}, eve{{1002, 1002, "eve"}};
  const int64_t ahead = Queue(bob, Duration(0));
  const int64_t waits = Queue(eve, Duration(0));
  EXPECT_EQ(WhyOf(waits, call_).job(), ahead) << "an operator sees all";
  EXPECT_EQ(WhyOf(waits, eve).kind(), v1::Back::NO_END);
  EXPECT_EQ(WhyOf(waits, eve).job(), 0);
  EXPECT_EQ(WhyOf(ahead, bob).job(), runs) << "who is on which node all may see";
}

TEST_F(PlanCallsTest, OnlySoManyThatAreLeftAloneAreNamedAndAllAreCounted) {
  cluster_.AddNode("c", 1);
  Submit("ada");
  Settle();
  EXPECT_EQ(Planned().kept_size(), 2);
  request_.set_most_kept(1);
  const v1::Plan plan = Planned();
  EXPECT_EQ(plan.kept_size(), 1);
  ASSERT_EQ(plan.kept_groups_size(), 1);
  EXPECT_EQ(plan.kept_groups(0).jobs(), 2);
  EXPECT_EQ(plan.kept_groups(0).rule(), v1::NOT_NEEDED);
}

TEST_F(PlanCallsTest, APlanSaysWhenItWasDecidedAndADryRunThatItWasNot) {
  EXPECT_EQ(Planned().decided_us(), 0);
  const int64_t now = ToMicros(clock_.Now());
  v1::SubmitResponse submitted;
  ASSERT_TRUE(service_.Submit(call_, &request_, &submitted).ok());
  Settle();
  const v1::ExplainResponse explained = Explained(submitted.id());
  ASSERT_EQ(explained.plans_size(), 1);
  EXPECT_EQ(explained.plans(0).decided_us(), now);
}

TEST_F(PlanCallsTest, NoPlanIsMadeForWhomNobodyKnows) {
  call_.identity = {kNobody, kNobody, "(page)"};
  Planned();
  EXPECT_TRUE(absl::IsPermissionDenied(status_)) << status_.message();
}

TEST_F(PlanCallsTest, ADryRunSaysWhatElseCouldBeDoneWhereThatIsAskedFor) {
  EXPECT_THAT(Planned().without(), IsEmpty());
  EXPECT_TRUE(status_.ok()) << status_.message();
  request_.set_compare(true);
  const v1::Plan plan = Planned();
  ASSERT_EQ(plan.without_size(), 1);
  EXPECT_THAT(plan.without(0).jobs(), ElementsAre(first_));
}

TEST_F(PlanCallsTest, AnExplanationLikewise) {
  v1::SubmitResponse submitted;
  const absl::Status status = service_.Submit(call_, &request_, &submitted);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_THAT(Explained(submitted.id(), false).plans(0).without(), IsEmpty());
  const v1::Plan plan = Explained(submitted.id(), true).plans(0);
  EXPECT_TRUE(status_.ok()) << status_.message();
  ASSERT_EQ(plan.without_size(), 1);
  EXPECT_TRUE(plan.without(0).next_best());
}

// Each comparison takes many plans.
TEST_F(PlanCallsTest, AnExplanationComparesTheNewestPlanAlone) {
  v1::SubmitResponse submitted;
  const absl::Status status = service_.Submit(call_, &request_, &submitted);
  ASSERT_TRUE(status.ok()) << status.message();
  const NodeId node(submitted.plan().nodes(0));
  ASSERT_TRUE(engine_.Cordon(Caller{0, "root", true}, node, true).ok());
  Settle();
  const v1::ExplainResponse explained = Explained(submitted.id(), true);
  ASSERT_EQ(explained.plans_size(), 2);
  EXPECT_THAT(explained.plans(0).without(), IsEmpty());
  EXPECT_EQ(explained.plans(1).without_size(), 1);
}

}  // namespace
}  // namespace siding
