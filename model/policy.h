// What a site values. Read from policies/*.yaml by the controller and the simulator; a plain value here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/units.h"
#include "model/job.h"

namespace siding {

// How victims are chosen. All but the first imitate what other schedulers do, for comparison.
enum class Strategy : uint8_t {
  kLeastLoss,     // exact, by predicted loss: planner/planner.h
  kSlurmPreempt,  // planner/baselines.h, this one and the following
  kSlurmYoungestFirst,
  kPbsOrder,
  kKueueClassical,
};
std::string ToString(Strategy strategy);
absl::StatusOr<Strategy> ParseStrategy(const std::string& name);

// What is done when a deadline cannot be met.
enum class WhenLate : uint8_t {
  kRefuse,      // say when it would work
  kBestEffort,  // admit, and plan for the earliest start that is possible
  kQueue,       // admit, and wait for nodes like a batch job of the highest priority; no job makes way
};
std::string ToString(WhenLate when);
absl::StatusOr<WhenLate> ParseWhenLate(const std::string& name);

// What becomes of an on-demand job when its walltime, or its user's quota, is over.
enum class AfterWalltime : uint8_t {
  kEnd,          // it is ended
  kPreemptible,  // it runs on, and makes way like a batch job
};
std::string ToString(AfterWalltime after);
absl::StatusOr<AfterWalltime> ParseAfterWalltime(const std::string& name);

// Which jobs a rule is about: each key must be matched by one of its values. The keys "user" and "name" are
// the job's own; all others (partition, qos, account, ...) are looked up in its labels. No keys: every job.
struct JobMatch {
  std::map<std::string, std::set<std::string>> any_of;
  bool Matches(const JobSpec& spec) const;
};

// What is so for some jobs only. What is not set is as in the policy itself.
struct JobClass {
  std::string name;
  JobMatch match;
  // In order of preference; empty and set: these jobs are protected. The job's own list narrows it further.
  std::optional<std::vector<Method>> methods;
  bool strict = false;  // only the first method that frees the nodes in time is considered for a job
  std::optional<Duration> min_runtime;
  std::optional<Duration> cooldown;
  std::optional<int> max_preemptions;
  double loss_weight = 1;  // what a lost node-second of these jobs counts
  std::optional<double> delay_weight;
  std::optional<Duration> most_lost_work;
};

// Who may ask for on-demand jobs, and how much. The first rule that matches counts.
struct OnDemandRule {
  JobMatch match;
  bool allowed = true;
  std::optional<int> max_nodes;              // of one request
  std::optional<double> node_hours_per_day;  // granted in the last 24 hours, of one user
};

struct Policy {
  Strategy strategy = Strategy::kLeastLoss;
  Duration margin = std::chrono::seconds(1);       // kept free before every deadline
  double confidence = 0.95;                        // of meeting a deadline: the quantile of predicted times
  Duration min_runtime = std::chrono::seconds(0);  // a job that runs for less is no victim
  Duration cooldown = std::chrono::seconds(0);     // after a preemption, before the next
  int max_preemptions = 100;                       // per job, unless the job says less
  double delay_weight = 0;  // what a node-second counts for which a victim only waits; a lost one is 1
  double unused_node_weight =
      0;  // what a node-second counts that a victim gives up and the request leaves idle
  double frozen_node_weight =
      0;  // what a node-second counts for which a frozen victim keeps a node from all other jobs
  Duration expected_hold =
      std::chrono::minutes(10);       // how long a request keeps its nodes, if it does not say
  double node_failures_per_year = 0;  // of one node; for jobs that leave the checkpoint interval to siding
  // Jobs that may be checkpointed are saved so often that a kill or a failure loses no more of their work; 0:
  // as often as they ask for.
  Duration most_lost_work{0};
  // What such checkpoints may take, as shares: of the bandwidth of the shared tier, and of the job's time,
  // for which they stop it.
  double checkpoint_bandwidth = 0.1;
  double checkpoint_stops = 0.01;
  // To which tier checkpoints on schedule go; to the shared one also where a job cannot go to the other.
  Tier checkpoint_tier = Tier::kShared;
  // Images on nodes' own disks are copied into shared storage, where other nodes find them.
  bool copy_images = true;
  Bytes shared_bandwidth;    // a second: what the shared tier can take in all; 0: as the best node measures
  int headroom_nodes = 0;    // kept free of batch jobs, for requests to come
  int budget_steps = 4096;   // resolution of the shared-storage budget
  int keep_checkpoints = 2;  // per job; older ones are deleted
  Duration keep_failed_images = std::chrono::hours(7 * 24);  // after the job has failed
  WhenLate when_late = WhenLate::kRefuse;
  AfterWalltime after_walltime = AfterWalltime::kEnd;
  std::set<std::string> operators = {"root"};              // users who may act on every job
  GpuCollectives gpu_collectives = GpuCollectives::kAsIs;  // of jobs that do not say
  bool allow_io_uring = false;                             // to all jobs
  bool private_jobs = true;  // users see their own jobs only, operators all; false: all users see all
  bool users_raise_priority = false;  // of jobs that they have submitted; false: they lower it only
  int max_jobs_per_user = 10000;      // that wait or run; operators may have any number
  // What one user may have written to the journal. Operators may any number.
  int max_requests_per_hour = 20000;   // submissions, refused ones too, and orders such as kill
  int max_request_mib_per_hour = 256;  // of specs
  // Of the tiers, that checkpoints on a user's wish may come to; 0: no limit.
  Bytes max_image_bytes_per_user;
  // Of what a submission may ask for. A job's nodes are not free before these are over.
  Duration max_kill_grace = std::chrono::minutes(5);
  Duration max_notice = std::chrono::hours(24);  // also to save itself: app.grace
  std::vector<JobClass> classes;                 // the first that matches a job counts
  std::vector<OnDemandRule> on_demand;           // none: all users may, without limit

  // Index into `classes`, or -1.
  int ClassOf(const JobSpec& spec) const;
  // `most_lost_work` of its class, or else of all.
  Duration MostLostWork(const JobSpec& spec) const;
  // Of any class, or of all.
  bool ProtectsSome() const;
  // Bytes a second: what the shared tier can take in all, if the best of its nodes has measured so much.
  double SharedBandwidth(double measured) const;
  // Of that, what the policy's checkpoints leave for all else.
  double ShareLeft() const { return ProtectsSome() ? 1 - checkpoint_bandwidth : 1; }
  // The rule that counts for this submitter, or nullptr.
  const OnDemandRule* RuleFor(const JobSpec& spec) const;
};

}  // namespace siding
