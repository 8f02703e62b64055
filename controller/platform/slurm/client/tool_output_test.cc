#include "controller/platform/slurm/client/tool_output.h"

#include <algorithm>

#include "common/files.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

// testdata: what the tools of Slurm 22.05.8 printed on a Slurm of three nodes (of each job, the fields that
// are read and a few others).
namespace siding::slurm {
namespace {

using testing::HasSubstr;

std::string Recorded(const std::string& name) { return *ReadFile(SIDING_TESTDATA "/" + name); }

QueueJob RecordedJob(uint32_t id) {
  const auto jobs = ParseQueue(Recorded("squeue.json"));
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  const auto found =
      std::find_if(jobs->begin(), jobs->end(), [&](const auto& j) { return j.id.value() == id; });
  return found == jobs->end() ? QueueJob() : *found;
}

QueueNode Node(const std::string& name) {
  const auto nodes = ParseNodes(Recorded("sinfo.json"));
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  const auto found =
      std::find_if(nodes->begin(), nodes->end(), [&](const auto& n) { return n.id.value() == name; });
  return found == nodes->end() ? QueueNode() : *found;
}

TEST(Jobs, OneThatWaits) {
  const QueueJob job = RecordedJob(1);
  EXPECT_EQ(job.phase, JobPhase::kPending);
  EXPECT_EQ(job.name, "train it");
  EXPECT_EQ(job.reason, "ReqNodeNotAvail");
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.gpus_per_node, 1);
  EXPECT_EQ(job.memory_per_node, Bytes{100 << 20});
  EXPECT_EQ(job.comment, "a b");
  EXPECT_EQ(job.admin_comment, "siding:parked x=y");
  EXPECT_FALSE(job.held);
  EXPECT_FALSE(job.limit);
}

TEST(Jobs, OneWhoseNameIsNoTextHidesNobody) {
  std::string text = Recorded("squeue.json");
  text.replace(text.find("train it"), 8, "train\xFF\xC0t");
  const auto jobs = ParseQueue(text);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->size(), ParseQueue(Recorded("squeue.json"))->size());
  EXPECT_EQ(jobs->front().name, "train\xEF\xBF\xBD\xEF\xBF\xBDt");
}

TEST(Jobs, ANegativeNiceValueIsPrintedWithoutItsSign) {
  const auto nice = [](const std::string& printed) {
    const auto jobs =
        ParseQueue(R"({"jobs": [{"job_id": 1, "job_state": "PENDING", "nice": )" + printed + "}]}");
    return jobs.ok() ? jobs->front().nice : 4711;
  };
  EXPECT_EQ(nice("4294967293"), -3);
  EXPECT_EQ(nice("-3"), -3);
  EXPECT_EQ(nice("7"), 7);
  EXPECT_EQ(nice("null"), 0);
}

TEST(Jobs, OneThatIsHeld) {
  EXPECT_TRUE(RecordedJob(2).held);
  EXPECT_EQ(RecordedJob(2).gpus_per_node, 1);  // asked for as --gpus=1, of the whole job
}

TEST(Jobs, OneThatRuns) {
  const QueueJob job = RecordedJob(4);
  EXPECT_EQ(job.phase, JobPhase::kRunning);
  EXPECT_EQ(JoinHostlist(job.on), "node1,node2");
  EXPECT_EQ(JoinHostlist(job.only_on), "node1,node2");
  EXPECT_EQ(job.gpus_per_node, 2);  // --exclusive
  EXPECT_EQ(job.limit, std::chrono::hours(1));
  EXPECT_EQ(job.partition, "fast");
  EXPECT_GE(*job.started, *job.submitted);
  EXPECT_EQ(job.ends, *job.started + *job.limit);
}

TEST(Jobs, ASuspendedElementOfAnArrayIsNotHeld) {
  const QueueJob job = RecordedJob(6);
  EXPECT_EQ(job.phase, JobPhase::kSuspended);
  EXPECT_EQ(job.array, JobNumber(3));
  EXPECT_EQ(job.priority, 0u);
  EXPECT_FALSE(job.held);
}

TEST(Jobs, ElementsWithoutNumbers) { EXPECT_EQ(RecordedJob(3).array_tasks, "2-3%1"); }

TEST(Jobs, OneThatHasEnded) {
  EXPECT_EQ(RecordedJob(5).phase, JobPhase::kEnded);
  EXPECT_EQ(RecordedJob(5).state, "COMPLETED");
  EXPECT_FALSE(RecordedJob(5).requeueable);
}

TEST(Jobs, MemoryByCpuIsReckonedByNode) {
  const auto jobs = ParseQueue(R"({"jobs": [{"job_id": 1, "job_state": "PENDING", "memory_per_node": null,
      "memory_per_cpu": 512, "cpus": 5, "node_count": 2}]})");
  EXPECT_EQ(jobs->front().memory_per_node, (Bytes{3 * (512LL << 20)}));
}

TEST(Jobs, SayWhichNodesTheyMayHave) {
  const auto jobs = ParseQueue(R"({"jobs": [{"job_id": 1, "job_state": "PENDING", "excluded_nodes": "n[1-2]",
      "features": "new&fast", "shared": "none"}, {"job_id": 2, "job_state": "PENDING", "shared": null}]})");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(jobs->front().not_on, testing::ElementsAre(NodeId("n1"), NodeId("n2")));
  EXPECT_EQ(jobs->front().constraint, "new&fast");
  EXPECT_TRUE(jobs->front().whole_nodes);
  EXPECT_FALSE(jobs->back().whole_nodes);
}

TEST(Nodes, SayTheirFeatures) {
  const auto nodes =
      ParseNodes(R"({"nodes": [{"name": "n1", "state": "idle", "active_features": "new,fast"}]})");
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  EXPECT_THAT(nodes->front().features, testing::ElementsAre("new", "fast"));
}

TEST(Jobs, AsLaterVersionsWriteThem) {
  const auto jobs = ParseQueue(R"({"jobs": [{"job_id": 9, "job_state": ["RUNNING", "SIGNALING"],
      "priority": {"set": true, "infinite": false, "number": 7},
      "time_limit": {"set": true, "infinite": true, "number": 0}}]})");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->front().state, "RUNNING");
  EXPECT_EQ(jobs->front().priority, 7u);
  EXPECT_FALSE(jobs->front().limit);
}

TEST(Jobs, AnErrorNamesTheRecordAndTheField) {
  const auto status =
      ParseQueue(R"({"jobs": [{"job_id": 1, "job_state": "RUNNING"}, {"job_id": 0}]})").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("number 2 of 'jobs': job_id"));
}

TEST(Jobs, WhatIsNoListOfThemIsAnError) {
  for (const char* text : {"", "{", "[]", "{}", R"({"jobs": 1})", R"({"jobs": [1]})"})
    EXPECT_TRUE(absl::IsInternal(ParseQueue(text).status())) << text;
}

TEST(Jobs, NoAnswerFromSlurmIsNotAnEmptyCluster) {
  const auto status = ParseQueue(R"({"errors": [{"error": "Unspecified error"}], "jobs": []})").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

TEST(Nodes, OneThatIsDrained) {
  const QueueNode node = Node("node2");
  EXPECT_TRUE(node.drained);
  EXPECT_EQ(node.reason, "a b");
  EXPECT_EQ(node.state, "allocated");
  EXPECT_TRUE(node.up);
}

TEST(Nodes, WhatTheyHaveAndWhatIsTaken) {
  const QueueNode node = Node("node1");
  EXPECT_EQ(node.cpus, 4);
  EXPECT_EQ(node.cpus_used, 4);
  EXPECT_EQ(node.memory, Bytes{1000 << 20});
  EXPECT_EQ(node.gpus, 2);
  EXPECT_EQ(node.gpus_used, 2);
  EXPECT_EQ(Node("node3").state, "idle");
}

TEST(Partitions, AreRead) {
  const auto partitions = ParsePartitions(Recorded("partitions.txt"));
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  EXPECT_TRUE(partitions->at(0).is_default);
  EXPECT_FALSE(partitions->at(0).max_time);
  const Partition& fast = partitions->at(1);
  EXPECT_EQ(fast.name, "fast");
  EXPECT_TRUE(fast.up);
  EXPECT_EQ(JoinHostlist(fast.nodes), "node1,node2");
  EXPECT_EQ(fast.max_time, std::chrono::hours(1));
  EXPECT_EQ(fast.priority_tier, 10);
  EXPECT_EQ(fast.grace, std::chrono::seconds(30));
}

TEST(Partitions, LimitsInDays) {
  const auto partitions =
      ParsePartitions("PartitionName=p Nodes=n MaxTime=2-12:00:00 PriorityTier=1 GraceTime=0 State=DOWN\n");
  EXPECT_EQ(partitions->front().max_time, std::chrono::hours(60));
  EXPECT_FALSE(partitions->front().up);
}

TEST(Partitions, AnErrorNamesThePartitionAndTheField) {
  const auto status = ParsePartitions("PartitionName=p Nodes=n MaxTime=1:00:00 GraceTime=0\n").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("partition p: PriorityTier"));
}

TEST(Reservations, AreRead) {
  const auto reservations = ParseReservations(Recorded("reservations.txt"));
  ASSERT_TRUE(reservations.ok()) << reservations.status();
  const Reservation expected{"siding-7",
                             {NodeId("node3")},
                             {"root"},
                             Time(std::chrono::seconds(1795252974)),
                             Time(std::chrono::seconds(1795256574))};
  EXPECT_EQ(*reservations, std::vector<Reservation>{expected});
}

TEST(Reservations, None) { EXPECT_TRUE(ParseReservations("No reservations in the system\n")->empty()); }

// What jobs[0] is read as if the tool prints this of it.
QueueJob Odd(const std::string& fields) {
  const auto jobs = ParseQueue(R"({"jobs": [{"job_id": 7, "job_state": "RUNNING", )" + fields + "}]}");
  EXPECT_TRUE(jobs.ok()) << jobs.status();
  return jobs.ok() && !jobs->empty() ? jobs->front() : QueueJob();
}

TEST(Jobs, AFieldOfAnotherTypeIsAsGoodAsNotSet) {
  EXPECT_EQ(Odd(R"("cpus": {"set": "yes", "number": 5})").cpus, 0);
  EXPECT_EQ(Odd(R"("cpus": {"set": true, "number": "5"})").cpus, 0);
}

TEST(Jobs, NumbersThatAreOutOfRangeAreAsGoodAsNotSet) {
  EXPECT_EQ(Odd(R"("cpus": 1e300)").cpus, 0);
  EXPECT_EQ(Odd(R"("memory_per_node": 18446744073709551614)").memory_per_node, Bytes{0});
  EXPECT_EQ(Odd(R"("time_limit": 4294967295)").limit, std::nullopt);
}

TEST(Jobs, TimesEndWithTheCalendar) { EXPECT_EQ(Odd(R"("start_time": 999999999999)").started, kLatestTime); }

TEST(Reservations, TimesEndWithTheCalendar) {
  const auto reservations =
      ParseReservations("ReservationName=r Nodes=n StartTime=1 EndTime=9223372036854775807\n");
  ASSERT_TRUE(reservations.ok()) << reservations.status();
  EXPECT_EQ(reservations->front().end, kLatestTime);
}

}  // namespace
}  // namespace siding::slurm
