#include "controller/platform/slurm/tool_client.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;

// Answers every call alike and remembers the last one.
class Tools {
 public:
  std::unique_ptr<SlurmClient> Client() {
    return NewSlurmToolClient([this](const std::vector<std::string>& argv) {
      last = absl::StrJoin(argv, " ");
      return answer;
    });
  }
  absl::StatusOr<ProgramResult> answer = ProgramResult();
  std::string last;
};

TEST(ToolClient, OrdersAreScontrolsVerbs) {
  Tools tools;
  EXPECT_TRUE(tools.Client()->Order(SlurmJobId(7), SlurmOrder::kRequeueHeld).ok());
  EXPECT_EQ(tools.last, "scontrol requeuehold 7");
}

TEST(ToolClient, CancelHasAToolOfItsOwn) {
  Tools tools;
  EXPECT_TRUE(tools.Client()->Order(SlurmJobId(7), SlurmOrder::kCancel).ok());
  EXPECT_EQ(tools.last, "scancel 7");
}

TEST(ToolClient, AnUpdateSaysOnlyWhatChanges) {
  Tools tools;
  SlurmJobChange change;
  change.wanted_nodes = {NodeId("a"), NodeId("b")};
  change.admin_comment = "";
  EXPECT_TRUE(tools.Client()->Update(SlurmJobId(7), change).ok());
  EXPECT_EQ(tools.last, "scontrol update JobId=7 ReqNodeList=a,b AdminComment=");
}

TEST(ToolClient, AReservationIsWrittenInSeconds) {
  Tools tools;
  const SlurmReservation r{
      "siding-1", {NodeId("a")}, {"ann", "bob"}, FromMicros(5'000'000), FromMicros(65'000'000)};
  EXPECT_TRUE(tools.Client()->CreateReservation(r).ok());
  EXPECT_EQ(tools.last,
            "scontrol create reservation ReservationName=siding-1 StartTime=uts5 EndTime=uts65 Nodes=a "
            "Users=ann,bob Flags=IGNORE_JOBS,FLEX,NO_HOLD_JOBS_AFTER");
}

TEST(ToolClient, WhatSlurmSaysNamesTheJob) {
  Tools tools;
  tools.answer = ProgramResult{1, "", "Job is pending execution for job 2\n"};
  const absl::Status status = tools.Client()->Order(SlurmJobId(2), SlurmOrder::kSuspend);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(status.message(), "job 2: Job is pending execution for job 2");
}

TEST(ToolClient, AToolThatHangsMeansThatSlurmIsNotThere) {
  Tools tools;
  tools.answer = absl::DeadlineExceededError("killed");
  EXPECT_TRUE(absl::IsUnavailable(tools.Client()->Jobs().status()));
}

TEST(ToolClient, TheSameListIsTheSamePointer) {
  Tools tools;
  const auto client = tools.Client();
  tools.answer->output = R"({"jobs": [{"job_id": 1, "job_state": "RUNNING", "last_sched_evaluation": 1}]})";
  const auto first = *client->Jobs();
  tools.answer->output = R"({"jobs": [{"job_id": 1, "job_state": "RUNNING", "last_sched_evaluation": 2}]})";
  EXPECT_EQ(*client->Jobs(), first);
}

TEST(ToolClient, ListsAreInOrder) {
  Tools tools;
  tools.answer->output =
      R"({"jobs": [{"job_id": 5, "job_state": "RUNNING"}, {"job_id": 3, "job_state": "RUNNING"}]})";
  const auto jobs = *tools.Client()->Jobs();
  EXPECT_THAT(*jobs, ElementsAre(testing::Field(&SlurmJob::id, SlurmJobId(3)),
                                 testing::Field(&SlurmJob::id, SlurmJobId(5))));
}

}  // namespace
}  // namespace siding
