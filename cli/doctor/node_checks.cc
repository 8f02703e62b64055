#include "cli/doctor/node_checks.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/expiry.h"

namespace siding::cli {
namespace {

// From then on a certificate is not a matter of planning any more.
constexpr Duration kLastDays = std::chrono::hours(3 * 24);

// What the controller says of nodes that it speaks for itself: controller/platform/kubernetes/speak.
constexpr char kNoAgents[] = "pods are only evicted in this cluster";

std::string About(const v1::Node& node) { return "node " + node.name(); }

bool IsConnected(const v1::Node& node) {
  return node.state() != "down" && node.state() != "silent" && node.state() != "lost";
}

bool IsKubernetes(const Answers& answers) { return answers.site.cluster_manager() == "kubernetes"; }

bool HasWork(const v1::Node& node) {
  return !node.jobs().empty() || !node.suspended_jobs().empty() || !node.strays().empty();
}

// An autoscaler removes nodes, and those that are lost are known to be: only what is left there is of
// interest.
bool IsMissed(const Answers& answers, const v1::Node& node) {
  const bool may_go = node.state() == "lost" || (node.state() == "down" && IsKubernetes(answers));
  return !may_go || HasWork(node);
}

// A finding about each of the nodes that has `problem`.
template <class Problem>
Findings OfEach(const std::vector<const v1::Node*>& nodes, Severity severity, const Problem& problem,
                const std::string& mend) {
  Findings findings;
  for (const v1::Node* node : nodes) {
    const std::string text = problem(*node);
    if (!text.empty()) findings.push_back({severity, About(*node), text, mend});
  }
  return findings;
}

std::string HeardLast(const Answers& answers, const v1::Node& node) {
  if (node.last_heard_us() == 0) return "";
  const Duration since = std::max(answers.now() - FromMicros(node.last_heard_us()), Duration(0));
  return absl::StrCat(", and was heard last ", FormatDuration(since), " ago");
}

std::string GetCriu(const Answers& answers, const std::string& builds) {
  return IsKubernetes(answers)
             ? "`deploy/get-criu` builds " + builds + " (docs/admin/kubernetes.md#pods-that-are-saved)"
             : "`/usr/share/siding/get-criu` builds " + builds + " (docs/admin/slurm-site.md)";
}

std::string CriuVersion(const v1::Node& node) {
  return std::string(*absl::StrSplit(node.criu(), absl::MaxSplits(',', 1)).begin());
}

using CriuCounts = std::map<std::string, int>;  // how many nodes have a version

CriuCounts CountCriu(const std::vector<const v1::Node*>& nodes) {
  CriuCounts counts;
  for (const v1::Node* node : nodes) {
    if (!node->criu().empty()) ++counts[CriuVersion(*node)];
  }
  return counts;
}

// The one of most nodes; empty: none is, and nobody can say which nodes are to be changed.
std::string UsualCriu(const CriuCounts& counts) {
  int most = 0;
  std::string usual;
  for (const auto& [version, count] : counts) {
    if (count >= most) usual = count == most ? "" : version;
    most = std::max(most, count);
  }
  return usual;
}

Finding DifferentCriu(const CriuCounts& counts, const std::string& mend) {
  const std::string versions =
      absl::StrJoin(counts, ", ", [](std::string* text, const auto& count) { text->append(count.first); });
  return {
      Severity::kWarning, "criu",
      absl::StrCat("nodes have different ones (", versions, "): what one has dumped another may not restore"),
      mend};
}

}  // namespace

std::vector<const v1::Node*> HeardNodes(const Answers& answers) {
  std::vector<const v1::Node*> heard;
  for (const v1::Node& node : answers.nodes.nodes()) {
    // Before its first heartbeat an agent has said nothing of its memory, nor of anything else.
    if (IsConnected(node) && node.ram_available() > 0) heard.push_back(&node);
  }
  return heard;
}

std::vector<const v1::Node*> NodesWithAgents(const Answers& answers) {
  std::vector<const v1::Node*> nodes = HeardNodes(answers);
  std::erase_if(nodes, [](const v1::Node* node) { return node->criu_problem() == kNoAgents; });
  return nodes;
}

std::string OrderForAgent(const Answers& answers, const std::string& verb) {
  return IsKubernetes(answers) ? verb + " its agent (docs/admin/kubernetes.md#when-it-does-not-work)"
                               : "`systemctl " + verb + " siding-agent` there";
}

Findings NoNodes(const Answers& answers) {
  if (!answers.nodes.nodes().empty()) return {};
  if (IsKubernetes(answers))
    return {{Severity::kFault, "controller", "it knows no node",
             "its log says whether it misses the cluster's nodes or their agents "
             "(docs/admin/kubernetes.md#when-it-does-not-work)"}};
  return {
      {Severity::kFault, "controller", "it knows no node: no agent has dialled since it was started",
       "start siding-agent on the nodes: `systemctl enable --now siding-agent` (docs/admin/sidingd.md); its "
       "log says why it cannot reach the controller"}};
}

Findings NodesAway(const Answers& answers) {
  Findings findings;
  for (const v1::Node& node : answers.nodes.nodes()) {
    if (!IsMissed(answers, node)) continue;
    if (node.state() == "down") {
      findings.push_back({Severity::kFault, About(node), "its agent is not connected",
                          OrderForAgent(answers, "start") +
                              "; its log says why it ended. If the node never comes back, and is off: "
                              "`sidingctl lost NODE` (docs/admin/nodes.md)",
                          HeardLast(answers, node)});
    } else if (node.state() == "silent") {
      findings.push_back({Severity::kFault, About(node), "its agent is connected and says nothing",
                          "see whether the machine swaps or a disk hangs (docs/admin/nodes.md); then " +
                              OrderForAgent(answers, "restart"),
                          HeardLast(answers, node)});
    } else if (node.state() == "lost") {
      findings.push_back(
          {Severity::kWarning, About(node), "it still has jobs, and an operator has said that it is lost",
           "if it is repaired, or another one has its name (docs/admin/nodes.md): " +
               OrderForAgent(answers, "start"),
           absl::StrCat(", ", FormatDuration(answers.now() - FromMicros(node.lost_since_us())), " ago")});
    }
  }
  return findings;
}

Findings UnknownNodes(const Answers& answers) {
  // A cluster manager may have jobs on nodes that are none of siding's.
  if (!answers.site.cluster_manager().empty()) return {};
  std::set<std::string> known;
  for (const v1::Node& node : answers.nodes.nodes()) known.insert(node.name());
  std::map<std::string, std::vector<int64_t>> jobs;  // by node
  for (const v1::Job& job : answers.jobs.jobs()) {
    for (const std::string& node : std::set<std::string>(job.nodes().begin(), job.nodes().end())) {
      if (!known.contains(node)) jobs[node].push_back(job.id());
    }
  }
  Findings findings;
  for (const auto& [node, there] : jobs) {
    findings.push_back({Severity::kFault, "node " + node,
                        absl::StrCat("its agent has not dialled since the controller was started, and has ",
                                     there.size() == 1 ? "job " : "jobs ", absl::StrJoin(there, ", ")),
                        "`systemctl start siding-agent` there. If the node never comes back, and is off: "
                        "`sidingctl lost NODE` (docs/admin/nodes.md)"});
  }
  return findings;
}

Findings NodesKeptFree(const Answers& answers) {
  Findings findings;
  for (const v1::Node& node : answers.nodes.nodes()) {
    if (node.state() == "cordoned") {
      findings.push_back({Severity::kWarning, About(node), "it is cordoned: nothing new is placed there",
                          "when its maintenance is over: `sidingctl uncordon NODE`"});
    } else if (node.state() == "drained") {
      const std::string& manager = answers.site.cluster_manager();
      findings.push_back({Severity::kWarning, About(node), absl::StrCat(manager, " lets no new job on it"),
                          IsKubernetes(answers) ? "`kubectl describe node NODE` says why"
                                                : "`scontrol show node NODE` says why"});
    }
  }
  return findings;
}

Findings FaultyNodes(const Answers& answers) {
  return OfEach(
      HeardNodes(answers), Severity::kFault,
      [](const v1::Node& node) {
        return node.fault().empty() ? "" : "no job can start there: " + node.fault();
      },
      "put that right, and it gets jobs again by itself (docs/admin/nodes.md)");
}

Findings CriuProblems(const Answers& answers) {
  return OfEach(
      NodesWithAgents(answers), Severity::kFault,
      [](const v1::Node& node) {
        return node.criu_problem().empty()
                   ? ""
                   : "jobs can be neither checkpointed nor restored there: " + node.criu_problem();
      },
      "where criu is missing or does not work, " + GetCriu(answers, "one") + "; then " +
          OrderForAgent(answers, "restart"));
}

Findings CriuLimits(const Answers& answers) {
  return OfEach(
      NodesWithAgents(answers), Severity::kWarning,
      [](const v1::Node& node) {
        return absl::StrContains(node.criu(), "without connections to elsewhere")
                   ? "jobs with connections to elsewhere are not checkpointed there: its kernel cannot hold "
                     "back "
                     "their packets"
                   : "";
      },
      "a kernel with nftables, Linux 5.12 or newer (docs/admin/checkpoints.md); then " +
          OrderForAgent(answers, "restart"));
}

Findings CriuVersions(const Answers& answers) {
  const std::vector<const v1::Node*> nodes = NodesWithAgents(answers);
  const CriuCounts counts = CountCriu(nodes);
  const std::string usual = UsualCriu(counts);
  const std::string mend =
      GetCriu(answers, "the same criu on all nodes") + "; then " + OrderForAgent(answers, "restart");
  if (counts.size() > 1 && usual.empty()) return {DifferentCriu(counts, mend)};
  return OfEach(
      nodes, Severity::kWarning,
      [&](const v1::Node& node) {
        return node.criu().empty() || CriuVersion(node) == usual
                   ? ""
                   : absl::StrCat("it has criu ", CriuVersion(node), ", and others have ", usual,
                                  ": what one has dumped the other may not restore");
      },
      mend);
}

Findings GpuProblems(const Answers& answers) {
  return OfEach(
      HeardNodes(answers), Severity::kFault,
      [](const v1::Node& node) {
        return node.gpu_problem().empty() ? "" : "no job can be taken off its GPUs: " + node.gpu_problem();
      },
      "`siding-agent --check` there says what it finds (docs/user/gpu.md); then " +
          OrderForAgent(answers, "restart"));
}

Findings FenceProblems(const Answers& answers) {
  return OfEach(
      HeardNodes(answers), Severity::kFault,
      [](const v1::Node& node) {
        return node.fence_problem().empty()
                   ? ""
                   : "jobs are not kept to their memory and number of processes there: " +
                         node.fence_problem();
      },
      "give the kernel these controllers, or say with `siding-agent --fence` that they are not wanted "
      "(docs/admin/security.md)");
}

Findings Certificates(const Answers& answers) {
  Findings findings;
  for (const v1::Node* node : HeardNodes(answers)) {
    const Time ends = FromMicros(node->certificate_ends_us());
    if (node->certificate_ends_us() == 0 || HowNear(ends, answers.now()) == Expiry::kFar) continue;
    findings.push_back({ends - answers.now() <= kLastDays ? Severity::kFault : Severity::kWarning,
                        About(*node), "the certificate of its agent " + ExpiryText(ends, answers.now()),
                        "`sidingctl certs node NODE --renew`, or as your authority does "
                        "(docs/admin/security.md)"});
  }
  return findings;
}

Findings Strays(const Answers& answers) {
  return OfEach(
      HeardNodes(answers), Severity::kWarning,
      [](const v1::Node& node) {
        return node.strays().empty()
                   ? ""
                   : absl::StrCat("tasks of jobs that the journal does not know live there: ",
                                  absl::StrJoin(node.strays(), ", "));
      },
      "what they use is not counted, and nobody ends them: `sidingctl events` has a note that says how "
      "(docs/admin/journal.md)");
}

}  // namespace siding::cli
