#include "cli/doctor/tier_checks.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "cli/doctor/node_checks.h"
#include "policy/policy_file.h"

namespace siding::cli {
namespace {

// What differs by more is another kind of disk, or one that is about to fail.
constexpr double kFarSlower = 5;

constexpr char kNoRoom[] = "has nothing free: it is full, away or read-only, or does not answer";
constexpr char kMakeRoom[] =
    "mount it, or make room: the agent's log names its folder (docs/admin/checkpoints.md); it is used again "
    "by itself";

// Agents know a tier's speed for as long as they keep that file, whether or not they still have the tier.
constexpr char kGivenUp[] =
    "; if it was given up, agents without --shared-dir remember its speed in rates.json of their state "
    "folder: stop them, remove that file, start them, and they measure anew what they have";

struct TierOfNode {
  const v1::Node* node = nullptr;
  std::string name;  // "local"
  int64_t free = 0;
  const v1::TierRates* rates = nullptr;
};

TierOfNode LocalOf(const v1::Node& node) { return {&node, "local", node.local_disk_free(), &node.local()}; }
TierOfNode SharedOf(const v1::Node& node) {
  return {&node, "shared", node.shared_disk_free(), &node.shared()};
}

std::vector<TierOfNode> LocalTiers(const Answers& answers) {
  std::vector<TierOfNode> tiers;
  for (const v1::Node* node : NodesWithAgents(answers)) tiers.push_back(LocalOf(*node));
  return tiers;
}

std::vector<TierOfNode> SharedTiers(const Answers& answers) {
  std::vector<TierOfNode> tiers;
  for (const v1::Node* node : NodesWithAgents(answers)) tiers.push_back(SharedOf(*node));
  return tiers;
}

std::string About(const TierOfNode& tier) { return "node " + tier.node->name(); }

bool MayBeCheckpointed(const v1::Job& job) {
  return std::find(job.methods().begin(), job.methods().end(), v1::CHECKPOINT) != job.methods().end();
}

// Null: there is none.
const v1::Job* LargestJob(const Answers& answers) {
  const v1::Job* largest = nullptr;
  for (const v1::Job& job : answers.jobs.jobs()) {
    if (MayBeCheckpointed(job) && (largest == nullptr || job.memory() > largest->memory())) largest = &job;
  }
  return largest;
}

int64_t MemoryOfARank(const v1::Job& job) { return job.memory() / std::max(job.nodes_size(), 1); }

// By node, the job with the largest part there.
std::map<std::string, const v1::Job*> LargestByNode(const Answers& answers) {
  std::map<std::string, const v1::Job*> largest;
  for (const v1::Job& job : answers.jobs.jobs()) {
    if (!MayBeCheckpointed(job)) continue;
    for (const std::string& node : job.nodes()) {
      const v1::Job*& there = largest[node];
      if (there == nullptr || MemoryOfARank(job) > MemoryOfARank(*there)) there = &job;
    }
  }
  return largest;
}

std::string TooLittle(int64_t free, const v1::Job& job, int64_t memory) {
  return absl::StrCat("has ", FormatBytes(Bytes{free}), " free, less than the ", FormatBytes(Bytes{memory}),
                      " that job ", job.id(), " has in memory: it may find no room for its checkpoint");
}

// Some node has it, or has had it.
bool HasShared(const std::vector<TierOfNode>& tiers) {
  return std::any_of(tiers.begin(), tiers.end(), [](const auto& tier) {
    return tier.free > 0 || tier.rates->dump().bytes_per_second() > 0;
  });
}

// A cluster may do without shared storage, but not some of its nodes.
Findings SharedWithoutRoom(const std::vector<TierOfNode>& tiers) {
  const bool has_room = std::any_of(tiers.begin(), tiers.end(), [](const auto& t) { return t.free > 0; });
  if (!has_room && HasShared(tiers))
    return {{Severity::kFault, "tier shared", absl::StrCat("it ", kNoRoom, ", on every node"),
             absl::StrCat(kMakeRoom, kGivenUp)}};
  Findings findings;
  for (const TierOfNode& tier : tiers) {
    if (!has_room || tier.free > 0) continue;
    findings.push_back({Severity::kFault, About(tier),
                        absl::StrCat("its shared tier ", kNoRoom, "; other nodes have room there"),
                        kMakeRoom});
  }
  return findings;
}

std::string Unmeasured(const TierOfNode& tier) {
  return absl::StrCat("the speed of its ", tier.name,
                      " tier is not measured: no job is planned to leave by a checkpoint in it");
}

using Speed = double (*)(const TierOfNode& tier);
double DumpSpeed(const TierOfNode& tier) { return tier.rates->dump().bytes_per_second(); }
double RestoreSpeed(const TierOfNode& tier) { return tier.rates->restore().bytes_per_second(); }

// Of those that are measured; of two the faster. 0: none is.
double UsualSpeed(const std::vector<TierOfNode>& tiers, Speed speed) {
  std::vector<double> speeds;
  for (const TierOfNode& tier : tiers) {
    if (speed(tier) > 0) speeds.push_back(speed(tier));
  }
  if (speeds.empty()) return 0;
  const auto middle = speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2);
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

std::string SpeedText(double speed) { return FormatBytes(Bytes{static_cast<int64_t>(speed)}) + "/s"; }

void AddSlow(const std::vector<TierOfNode>& tiers, Speed speed, const std::string& verb, Findings& findings) {
  const double usual = UsualSpeed(tiers, speed);
  for (const TierOfNode& tier : tiers) {
    if (speed(tier) <= 0 || speed(tier) * kFarSlower >= usual) continue;
    findings.push_back(
        {Severity::kWarning, About(tier),
         absl::StrCat("its ", tier.name, " tier ", verb, " ", SpeedText(speed(tier)),
                      ", where the nodes' median is ", SpeedText(usual)),
         "look at its disk, mount and network; after that its agent learns the speed from what it "
         "writes and reads"});
  }
}

}  // namespace

Findings TiersWithoutRoom(const Answers& answers) {
  Findings findings = SharedWithoutRoom(SharedTiers(answers));
  for (const TierOfNode& tier : LocalTiers(answers)) {
    if (tier.free == 0)
      findings.push_back(
          {Severity::kFault, About(tier), absl::StrCat("its local tier ", kNoRoom), kMakeRoom});
  }
  return findings;
}

Findings TiersTooSmall(const Answers& answers) {
  Findings findings;
  constexpr char kMend[] = "make room there, or give it more storage (docs/admin/checkpoints.md)";
  if (const v1::Job* largest = LargestJob(answers); largest != nullptr) {
    int64_t free = 0;  // 0: nowhere is any, which is another finding
    for (const TierOfNode& tier : SharedTiers(answers)) {
      if (tier.free > 0 && (free == 0 || tier.free < free)) free = tier.free;
    }
    if (free > 0 && free < largest->memory())
      findings.push_back(
          {Severity::kWarning, "tier shared", "it " + TooLittle(free, *largest, largest->memory()), kMend});
  }
  const std::map<std::string, const v1::Job*> largest = LargestByNode(answers);
  for (const TierOfNode& tier : LocalTiers(answers)) {
    const auto job = largest.find(tier.node->name());
    if (job == largest.end() || tier.free == 0 || tier.free >= MemoryOfARank(*job->second)) continue;
    findings.push_back({Severity::kWarning, About(tier),
                        "its local tier " + TooLittle(tier.free, *job->second, MemoryOfARank(*job->second)),
                        kMend});
  }
  return findings;
}

Findings TiersNotMeasured(const Answers& answers) {
  Findings findings;
  for (const auto& tiers : {LocalTiers(answers), SharedTiers(answers)}) {
    for (const TierOfNode& tier : tiers) {
      if (tier.free == 0 || (DumpSpeed(tier) > 0 && RestoreSpeed(tier) > 0)) continue;
      findings.push_back({Severity::kWarning, About(tier), Unmeasured(tier),
                          "its agent does it in the first seconds after its start; if it could not, its log "
                          "says why: then " +
                              OrderForAgent(answers, "restart")});
    }
  }
  return findings;
}

Findings TiersInMemoryAlone(const Answers& answers) {
  Findings findings;
  const auto policy = ParsePolicyFile(answers.policy.yaml(), "the policy in force");
  const bool copies = !policy.ok() || policy->policy.copy_images;
  if (copies && HasShared(SharedTiers(answers))) return findings;
  for (const v1::Node* node : NodesWithAgents(answers)) {
    if (!node->local_in_memory()) continue;
    findings.push_back(
        {Severity::kWarning, "node " + node->name(),
         "its local tier is in memory, and its images are copied nowhere: a restart of the node "
         "loses them",
         "give agents a --shared-dir, or a --local-dir on a disk, and leave `copy_images` to the "
         "policy (docs/admin/checkpoints.md)"});
  }
  return findings;
}

Findings SlowTiers(const Answers& answers) {
  Findings findings;
  // A disk is not slow because others have memory.
  std::vector<TierOfNode> in_memory, on_disk;
  for (const TierOfNode& tier : LocalTiers(answers))
    (tier.node->local_in_memory() ? in_memory : on_disk).push_back(tier);
  for (const auto& tiers : {on_disk, in_memory, SharedTiers(answers)}) {
    AddSlow(tiers, DumpSpeed, "writes", findings);
    AddSlow(tiers, RestoreSpeed, "reads", findings);
  }
  return findings;
}

}  // namespace siding::cli
