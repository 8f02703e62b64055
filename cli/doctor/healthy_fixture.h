// A cluster in which there is nothing to mend, for tests that break one thing of it.
#pragma once

#include <string>

#include "cli/doctor/finding.h"

namespace siding::cli {

inline constexpr int64_t kTestNow = 1'000'000'000'000'000;  // microseconds since 1970
inline constexpr int64_t kTestDay = int64_t{24} * 3600 * 1'000'000;
inline constexpr int64_t kGib = int64_t{1} << 30;

inline void SetTestSpeed(v1::TierRates& rates, double bytes_per_second) {
  rates.mutable_dump()->set_bytes_per_second(bytes_per_second);
  rates.mutable_restore()->set_bytes_per_second(bytes_per_second);
}

inline v1::Node& AddHealthyNode(Answers& answers, const std::string& name) {
  v1::Node& node = *answers.nodes.add_nodes();
  node.set_name(name);
  node.set_state("up");
  node.set_ram_available(8 * kGib);
  node.set_local_disk_free(100 * kGib);
  node.set_shared_disk_free(1000 * kGib);
  SetTestSpeed(*node.mutable_local(), 300e6);
  SetTestSpeed(*node.mutable_shared(), 600e6);
  node.set_criu("4.2.1, as the job's user");
  node.set_last_heard_us(kTestNow - 1'000'000);
  return node;
}

inline v1::Job& AddJobOn(Answers& answers, int64_t id, const std::string& node) {
  v1::Job& job = *answers.jobs.add_jobs();
  job.set_id(id);
  job.set_state("running");
  job.add_nodes(node);
  job.add_methods(v1::CHECKPOINT);
  job.set_memory(kGib);
  return job;
}

// Nodes n1, n2 and n3, and job 1 on n1.
inline Answers HealthyAnswers() {
  Answers answers;
  answers.site.set_now_us(kTestNow);
  answers.site.set_user("root");
  answers.site.set_is_operator(true);
  answers.asked = answers.answered = FromMicros(kTestNow);
  for (const char* node : {"n1", "n2", "n3"}) AddHealthyNode(answers, node);
  AddJobOn(answers, 1, "n1");
  return answers;
}

}  // namespace siding::cli
