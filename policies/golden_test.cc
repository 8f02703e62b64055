// Every shipped policy on the same small cluster: what it makes of four requests, as text, held against
// policies/golden/NAME.txt. A change of a plan must be meant: SIDING_UPDATE_GOLDEN=1 writes the files again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files.h"
#include "gtest/gtest.h"
#include "planner/planner.h"
#include "policy/policy_file.h"

namespace siding {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kPolicies = fs::path(SIDING_SOURCE_DIR) / "policies";
constexpr Time kNow{std::chrono::hours(500'000)};

Bytes GiB(double n) { return Bytes{static_cast<int64_t>(n * (1LL << 30))}; }
NodeId NodeNumber(int n) { return NodeId("n" + std::to_string(n)); }

Snapshot ReadCluster(const json& cluster, const Policy& policy) {
  Snapshot snapshot;
  snapshot.now = kNow;
  snapshot.shared.bytes_per_second = 4e9;
  for (int n = 0; n < cluster.at("nodes"); ++n) {
    NodeView node;
    node.id = NodeNumber(n);
    node.capacity = {1, GiB(64), 0};
    node.free = {0, GiB(64), 0};
    node.ram_available = GiB(64);
    node.shared = {{1e9, std::chrono::seconds(1), 0.2}, {1e9, std::chrono::seconds(1), 0.2}};
    snapshot.nodes.push_back(node);
  }
  for (const json& j : cluster.at("jobs")) {
    JobSpec spec;
    spec.user = j.at("user");
    spec.labels = j.at("labels").get<std::map<std::string, std::string>>();
    JobView job;
    job.id = JobId(j.at("id"));
    job.priority = j.value("priority", 0);
    job.job_class = policy.ClassOf(spec);
    job.per_node = {1, Bytes{0}, 0};
    job.methods = {Method::kSuspend, Method::kCheckpoint, Method::kKill};
    job.kill_grace = std::chrono::seconds(2);
    job.running_since = kNow - FromSeconds(j.at("running"));
    job.durable_at = kNow - FromSeconds(j.at("lost"));
    for (int n : j.at("nodes")) {
      job.nodes.push_back(NodeNumber(n));
      job.memory.push_back(GiB(j.at("memory")));
    }
    snapshot.jobs.push_back(job);
  }
  return snapshot;
}

std::string Text(const Request& request, const Plan& plan) {
  std::string text =
      absl::StrFormat("%d nodes within %.0f s", request.nodes, ToSeconds(request.start_by - kNow));
  if (request.not_before > kNow)
    absl::StrAppendFormat(&text, ", not before %.0f s", ToSeconds(request.not_before - kNow));
  if (!plan.feasible) return absl::StrCat(text, "\n  refused: ", plan.refusal, "\n");
  absl::StrAppendFormat(&text, ": at %.1f s, %.0f node-seconds lost\n",
                        ToSeconds(plan.predicted_start - kNow), plan.loss_node_seconds);
  for (const PlanStep& step : plan.steps) {
    absl::StrAppend(&text, "  ", step.early ? "in advance, " : "", ToString(step.method), " job ",
                    step.job.value());
    if (step.method == Method::kCheckpoint) absl::StrAppend(&text, " to ", ToString(step.tier));
    if (step.begin > kNow) absl::StrAppendFormat(&text, ", not before %.1f s", ToSeconds(step.begin - kNow));
    text += "\n";
  }
  return text;
}

std::string PlansOf(const std::string& name) {
  const auto file = LoadPolicyFile(kPolicies / (name + ".yaml"));
  if (!file.ok()) return std::string(file.status().message());
  const json cluster = json::parse(std::ifstream(kPolicies / "golden" / "cluster.json"));
  std::string text;
  for (const json& r : cluster.at("requests")) {
    Request request{
        JobId(99), r.at("nodes"), {1, GiB(r.at("memory")), 0}, kNow + FromSeconds(r.at("within"))};
    request.hold = FromSeconds(r.at("hold"));
    Snapshot snapshot = ReadCluster(cluster, file->policy);
    for (JobView& job : snapshot.jobs) {
      if (r.contains("running")) job.running_since = kNow - FromSeconds(r.at("running"));
      if (r.contains("preempted")) job.last_preempted = kNow - FromSeconds(r.at("preempted"));
    }
    if (r.contains("notice")) request.not_before = kNow + FromSeconds(r.at("notice"));
    for (const char* since : {"running", "preempted"}) {
      if (r.contains(since))
        absl::StrAppend(&text, "every job ", since, " since ", r.at(since).dump(), " s: ");
    }
    text += Text(request, MakePlan(snapshot, request, file->policy));
  }
  return text;
}

class GoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTest, PlansAreAsTheyWere) {
  const fs::path golden = kPolicies / "golden" / (GetParam() + ".txt");
  const std::string plans = PlansOf(GetParam());
  if (std::getenv("SIDING_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(golden.string(), plans).ok());
  }
  const auto expected = ReadFile(golden.string());
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(plans, *expected);
}

std::vector<std::string> Shipped() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kPolicies)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Policies, GoldenTest, testing::ValuesIn(Shipped()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace siding
