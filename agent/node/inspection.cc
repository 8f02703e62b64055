#include "agent/node/inspection.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/checkpoint/connections.h"
#include "agent/checkpoint/precheck.h"
#include "agent/checkpoint/recreated_names.h"
#include "agent/gpu/drainable.h"
#include "agent/os/processes.h"
#include "agent/pods/pod_dump.h"

namespace siding {
namespace {

// As long as one process keeps the look at it waiting.
constexpr auto kHangs = std::chrono::seconds(10);

// What a drain leaves behind and CRIU does not restore: descriptors of GPUs in processes that are none of the
// driver's clients, such as a data loader's workers. Empty: there is nothing of the kind.
std::string WhyNotWithoutGpu(pid_t init, const std::set<pid_t>& clients) {
  for (const GpuDescriptor& descriptor : OpenGpuDescriptors(init)) {
    if (clients.contains(descriptor.pid)) continue;
    return absl::StrCat(NameOf(descriptor.pid),
                        " has a GPU open without using it, which cannot be restored; it can be suspended");
  }
  return "";
}

// Its state would move to GPUs that others have if it were on other GPUs than recorded.
std::string WhyNotDrainableManaged(const GpuFacts& facts, const std::vector<pid_t>& tree) {
  if (!facts.unknown.empty()) return facts.unknown;
  const std::string other = facts.nodes_own->FindOther(facts.allocated, tree);
  if (other.empty()) return "";
  return absl::StrCat("it uses ", other, ", which ", facts.cluster_manager, " has not given to it");
}

}  // namespace

std::string WhyNotDrainable(const GpuFacts& facts, pid_t init, const std::function<bool(pid_t)>& is_client) {
  if (!facts.used) {
    const bool has_one = facts.externally_managed && !OpenGpuDescriptors(init).empty();
    return has_one ? "it uses a GPU, and " + facts.cluster_manager + " has given it none" : "";
  }
  const std::string problem = facts.nodes_own == nullptr ? "" : facts.nodes_own->problem();
  if (!facts.assigned) return problem.empty() ? "this node's agent drains no GPUs" : problem;
  if (!problem.empty()) return problem;
  const std::vector<pid_t> tree = ProcessTree(init);
  if (std::string why = facts.externally_managed ? WhyNotDrainableManaged(facts, tree) : ""; !why.empty())
    return why;
  return WhyNotDrainable(tree, facts.nodes, facts.gpus, is_client);
}

Inspection Inspect(const InspectionRequest& asked, std::atomic<pid_t>& at) {
  Inspection inspection;
  inspection.drained = asked.drained;
  const pid_t init = asked.init;
  const GpuFacts& gpu = asked.gpu;
  if (init > 0) inspection.memory = TreeMemory(init, at);
  if (!asked.on_gpus.empty() && gpu.nodes_own != nullptr) {
    inspection.gpu_memory =
        gpu.nodes_own->UsedBy(asked.on_gpus, init > 0 ? ProcessTree(init) : std::vector<pid_t>());
  }
  if (init <= 0) return inspection;
  Hindrances found = FindHindrances(init, asked.criu, gpu.used ? GpuDevices::kLeave : GpuDevices::kStay);
  inspection.cannot_dump = std::move(found.to_dump);
  inspection.timer = std::move(found.timer);
  if (!asked.bundle.empty()) {
    ContainerHindrances container = FindContainerHindrances(asked.bundle, init);
    if (inspection.cannot_dump.empty()) inspection.cannot_dump = std::move(container.lasting);
    inspection.passing = std::move(container.passing);
    return inspection;
  }
  if (inspection.cannot_dump.empty() && asked.has_criu) inspection.cannot_dump = asked.no_criu;
  if (inspection.cannot_dump.empty() && asked.has_criu) {
    // A directory service may take a while.
    inspection.user = asked.user ? asked.user : AccountOf(asked.uid, asked.gid);
    inspection.cannot_dump = std::string(CheckRecreatedNames(init, *inspection.user).message());
  }
  if (inspection.cannot_dump.empty() && !asked.no_packet_tables.empty() && !ConnectionsStayInside(init))
    inspection.cannot_dump = "has connections to elsewhere, and " + asked.no_packet_tables;
  // While it is off its GPUs nothing can be seen of that, and what was seen before holds.
  if (asked.drained) return inspection;
  std::set<pid_t> clients;
  if (gpu.used && gpu.assigned) clients = gpu.nodes_own->MayBeOnGpus(ProcessTree(init));
  // As seen a moment ago: the driver is asked only when it matters, since it may block the caller.
  inspection.cannot_drain = WhyNotDrainable(gpu, init, [&](pid_t pid) { return clients.contains(pid); });
  if (gpu.used && inspection.cannot_dump.empty()) inspection.cannot_dump = WhyNotWithoutGpu(init, clients);
  inspection.gpu_clients = clients.size();
  return inspection;
}

std::string WhyNotInspected(pid_t at) {
  return (at > 0 ? NameOf(at) : "one of its processes") + " blocks reads of its memory";
}

Inspections::Newest Inspections::Look(const InspectionRequest& asked, Steady::time_point until) {
  const auto now = Steady::now();
  const bool something = asked.init > 0 || !asked.on_gpus.empty();
  // One that has hung since the last look is not waited for again.
  const bool begun = something && work_.Begin([asked, progress = progress_] {
    progress->Put(Inspect(asked, progress->at));
  });
  if (begun) work_.Wait(until);
  const auto since = work_.since();
  const pid_t at = progress_->at;
  const bool hangs = asked.init > 0 && since && now - std::max(*since, progress_->SinceAt(at)) > kHangs;
  return {progress_->last(), hangs ? WhyNotInspected(at) : ""};
}

}  // namespace siding
