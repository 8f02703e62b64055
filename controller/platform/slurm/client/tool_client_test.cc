#include "controller/platform/slurm/client/tool_client.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

using testing::ElementsAre;

// Answers every call alike and remembers the last one.
class Tools {
 public:
  std::unique_ptr<Client> Open() {
    return NewToolClient([this](const std::vector<std::string>& argv) {
      last = absl::StrJoin(argv, " ");
      return answer;
    });
  }
  absl::StatusOr<ProgramResult> answer = ProgramResult();
  std::string last;
};

TEST(ToolClient, OrdersAreScontrolsVerbs) {
  Tools tools;
  EXPECT_TRUE(tools.Open()->Do(JobNumber(7), Verb::kSuspend).ok());
  EXPECT_EQ(tools.last, "scontrol suspend 7");
}

TEST(ToolClient, SettingsAreThoseInForce) {
  Tools tools;
  tools.answer = ProgramResult{.output = "SLURM_VERSION = 22.05.8\nRequeueExit = 99\n"};
  const auto settings = tools.Open()->LoadSettings();
  EXPECT_EQ(tools.last, "scontrol show config");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_THAT(settings->requeue_exits, ElementsAre(99));
}

TEST(ToolClient, AnUpdateSaysOnlyWhatChanges) {
  Tools tools;
  JobChange change;
  change.only_on = {NodeId("a"), NodeId("b")};
  change.admin_comment = "";
  EXPECT_TRUE(tools.Open()->Update(JobNumber(7), change).ok());
  EXPECT_EQ(tools.last, "scontrol update JobId=7 ReqNodeList=a,b AdminComment=");
}

TEST(ToolClient, ANiceValueMayBeLess) {
  Tools tools;
  JobChange change;
  change.nice = -1;
  EXPECT_TRUE(tools.Open()->Update(JobNumber(7), change).ok());
  EXPECT_EQ(tools.last, "scontrol update JobId=7 Nice=-1");
}

// By the array's number scontrol means all of its elements, and one of them has that number.
TEST(ToolClient, AnElementWithTheNumberOfItsArrayIsNamedAsAnElement) {
  Tools tools;
  const auto client = tools.Open();
  tools.answer->output = R"({"jobs": [
      {"job_id": 7, "job_state": "RUNNING", "array_job_id": 7, "array_task_id": 3},
      {"job_id": 8, "job_state": "RUNNING", "array_job_id": 7, "array_task_id": 0},
      {"job_id": 9, "job_state": "RUNNING", "array_job_id": 0, "array_task_id": null}]})";
  ASSERT_TRUE(client->Jobs().ok());
  EXPECT_TRUE(client->Do(JobNumber(7), Verb::kSuspend).ok());
  EXPECT_EQ(tools.last, "scontrol suspend 7_3");
  JobChange change;
  change.comment = "";
  EXPECT_TRUE(client->Update(JobNumber(7), change).ok());
  EXPECT_EQ(tools.last, "scontrol update JobId=7_3 Comment=");
  for (const uint32_t other : {8u, 9u}) {
    EXPECT_TRUE(client->Do(JobNumber(other), Verb::kResume).ok());
    EXPECT_EQ(tools.last, "scontrol resume " + std::to_string(other));
  }
}

TEST(ToolClient, AReservationIsWrittenInSeconds) {
  Tools tools;
  const Reservation r{
      "siding-1", {NodeId("a")}, {"ann", "bob"}, FromMicros(5'000'000), FromMicros(65'000'000)};
  EXPECT_TRUE(tools.Open()->CreateReservation(r).ok());
  EXPECT_EQ(tools.last,
            "scontrol create reservation ReservationName=siding-1 StartTime=uts5 EndTime=uts65 Nodes=a "
            "Users=ann,bob Flags=IGNORE_JOBS,FLEX,NO_HOLD_JOBS_AFTER");
}

TEST(ToolClient, WhatSlurmSaysNamesTheJob) {
  Tools tools;
  tools.answer = ProgramResult{1, "", "Job is pending execution for job 2\n"};
  const absl::Status status = tools.Open()->Do(JobNumber(2), Verb::kSuspend);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "job 2: Job is pending execution for job 2");
}

TEST(ToolClient, AToolThatHangsMeansThatSlurmIsNotThere) {
  Tools tools;
  tools.answer = absl::DeadlineExceededError("killed");
  EXPECT_TRUE(absl::IsUnavailable(tools.Open()->Jobs().status()));
}

TEST(ToolClient, TheSameListIsTheSamePointer) {
  Tools tools;
  const auto client = tools.Open();
  tools.answer->output = R"({"jobs": [{"job_id": 1, "job_state": "RUNNING", "last_sched_evaluation": 1}]})";
  const auto first = *client->Jobs();
  tools.answer->output = R"({"jobs": [{"job_id": 1, "job_state": "RUNNING", "last_sched_evaluation": 2}]})";
  EXPECT_EQ(*client->Jobs(), first);
}

TEST(ToolClient, ListsAreInOrder) {
  Tools tools;
  tools.answer->output =
      R"({"jobs": [{"job_id": 5, "job_state": "RUNNING"}, {"job_id": 3, "job_state": "RUNNING"}]})";
  const auto jobs = *tools.Open()->Jobs();
  EXPECT_THAT(*jobs, ElementsAre(testing::Field(&QueueJob::id, JobNumber(3)),
                                 testing::Field(&QueueJob::id, JobNumber(5))));
}

}  // namespace
}  // namespace siding::slurm
