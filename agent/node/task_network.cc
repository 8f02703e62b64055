// The network that a rank has to itself, of a job that keeps its connections (agent/network). Nothing comes
// in until all ranks have one, nor while CRIU has the rank's connections.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/network/gang_network.h"
#include "agent/node/task.h"
#include "agent/os/processes.h"
#include "agent/shim/gang_endpoint.h"
#include "agent/shim/shim.h"
#include "agent/shim/shim_process.h"
#include "common/fault.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace siding {
namespace {

// A peer that stands still acknowledges at once. Without that its connection sends again, a little later.
constexpr Duration kDrainPatience = std::chrono::milliseconds(200);
// What would be in no image; a kernel sends it again after less.
constexpr Duration kOrphanPatience = std::chrono::seconds(2);

}  // namespace

absl::Status Task::PlanNetwork(agent::ShimNetwork& network) {
  if (!host_.no_network.empty())
    return absl::FailedPreconditionError("no connections are kept on this node: " + host_.no_network);
  if (Record().spec().nodes() > kMostKeptRanks)
    return absl::FailedPreconditionError(
        absl::StrCat("connections are kept between ", kMostKeptRanks, " tasks at most"));
  SIDING_ASSIGN_OR_RETURN(*network.mutable_address(), host_.GangAddress());
  network.set_port(host_.options.gang_port);
  // The tasks of each step of a cluster manager's job begin at a rank of their own.
  network.set_rank(id_.rank % kRanksPerStep);
  return absl::OkStatus();
}

bool Task::AwaitsOthers() {
  MutexLock lock(mutex_);
  const bool runs = machine_.phase() == v1::RUNNING || machine_.phase() == v1::RESTORING;
  return runs && record_.report().has_endpoint();
}

// Never the node's: a task may have been started by an agent that gave it none, and pids are used again.
absl::StatusOr<UniqueFd> Task::OwnNetwork() {
  const agent::TaskRecord record = Record();
  const pid_t init = LivingInit(record.init());
  if (init <= 0) return absl::NotFoundError("its processes are gone");
  SIDING_ASSIGN_OR_RETURN(UniqueFd network, OpenNetworkOf(init));
  SIDING_ASSIGN_OR_RETURN(const GangEndpoint endpoint, EndpointOf(network.get()));
  if (!(endpoint == FromProto(record.report().endpoint())))
    return absl::FailedPreconditionError("its network is another than it was");
  return network;
}

// Restored, it stands still until it is joined, so that what its connections have to send is sent at once.
void Task::NoteRestored() {
  const agent::TaskRecord record = Record();
  const pid_t init = LivingInit(record.init());
  if (!record.spec().keep_connections() || record.report().phase() != v1::RESTORING ||
      record.report().has_endpoint() || init <= 0)
    return;
  {
    MutexLock lock(mutex_);
    restoring_.End("restored");
  }
  if (const absl::Status status = NoteNetwork(init); !status.ok())
    return spdlog::warn("task {}: {}", name_, std::string(status.message()));
  MutexLock lock(mutex_);
  Persist();
  Send();
}

absl::Status Task::NoteNetwork(pid_t init) {
  SIDING_ASSIGN_OR_RETURN(const UniqueFd network, OpenNetworkOf(init));
  SIDING_ASSIGN_OR_RETURN(const GangEndpoint endpoint, EndpointOf(network.get()));
  MutexLock lock(mutex_);
  *record_.mutable_report()->mutable_endpoint() = ToProto(endpoint);
  return absl::OkStatus();
}

// The controller repeats the order until it is said what has become of it.
void Task::JoinNetwork(const v1::JoinNetwork& order) {
  std::vector<GangEndpoint> ranks;
  for (const v1::GangEndpoint& rank : order.ranks()) ranks.push_back(FromProto(rank));
  MutexLock network_lock(network_mutex_);
  const auto join = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(network_mutex_) -> absl::Status {
    if (!order.refused().empty()) return absl::FailedPreconditionError(order.refused());
    SIDING_RETURN_IF_ERROR(FaultAt<"agent.network.join: a rank's network is about to be joined to others">());
    SIDING_ASSIGN_OR_RETURN(const UniqueFd network, OwnNetwork());
    SIDING_RETURN_IF_ERROR(JoinGangNetwork(network.get(), ranks));
    return packets_are_held_ ? absl::OkStatus() : LiftNetwork(network.get());
  };
  if (!AwaitsOthers()) return;
  const absl::Status status = join();
  if (absl::IsNotFound(status)) return;  // its end is told
  FaultHere<"agent.network.joined: a rank's network is joined to others, nobody has been told">();
  MutexLock lock(mutex_);
  v1::TaskReport& report = *record_.mutable_report();
  report.set_joined(report.joined() || status.ok());
  report.set_not_joined(status.ok() ? "" : "its network cannot be joined: " + std::string(status.message()));
  if (!status.ok()) spdlog::warn("task {}: {}", name_, report.not_joined());
  // Of siding's own jobs the controller ends all ranks. Of others' the shim says what has become of it.
  // One that has been joined and restored stands still, and would wait for a peer that does not come.
  const bool goes_on = report.joined() && (order.refused().empty() || machine_.phase() != v1::RESTORING);
  const bool ends = externally_managed_ && !goes_on;
  if (externally_managed_) record_.set_put_off(ends);
  Persist();
  Send();
  if (ends) freezer().KillAll(outside_, LivingInit(record_.init()));
}

// What a restored rank sends before its peers are let in, they would not hear for a second.
void Task::RunJoined() {
  {
    MutexLock lock(mutex_);
    if (!record_.report().joined()) return;
    // The order may come again.
    if (restoring_.Of(kWaitedForOthers) == Duration(0)) restoring_.End(kWaitedForOthers);
  }
  if (const absl::Status told = WriteFileAtomically(folder_ + "/" + kAllJoined, "", 0600); !told.ok())
    spdlog::warn("task {}: {}", name_, std::string(told.message()));
}

void Task::Drain() {
  if (const auto network = OwnNetwork(); network.ok()) Drain(network->get());
}

void Task::Drain(int network) {
  AwaitConnections(network, Drained::kYes, kDrainPatience, {.ranks = exited_}).status().IgnoreError();
}

absl::Status Task::Hold() {
  SIDING_ASSIGN_OR_RETURN(const UniqueFd network, OwnNetwork());
  Drain(network.get());
  SIDING_ASSIGN_OR_RETURN(const bool have_arrived, AwaitConnections(network.get(), Drained::kNotYet,
                                                                    kOrphanPatience, {.ranks = exited_}));
  if (!have_arrived)
    return absl::UnavailableError("what it sent last over a connection that it has closed has not arrived");
  MutexLock network_lock(network_mutex_);
  packets_are_held_ = true;
  SIDING_RETURN_IF_ERROR(HoldNetwork(network.get()));
  return FaultAtCriu<"agent.network.held: no packet reaches a stopped rank, criu has not touched it">();
}

void Task::EndLastWords() {
  if (!Record().report().has_endpoint()) return;
  if (const auto shim = FindShim(folder_); shim.ok())
    syscall(SYS_pidfd_send_signal, shim->get(), SIGTERM, nullptr, 0);
}

// It has ended, and its shim waits for its last bytes to arrive.
bool Task::SpeaksOut() {
  const agent::TaskRecord record = Record();
  return record.report().has_endpoint() && !IsAlive(record.init().pid(), record.init().start_time());
}

absl::Status Task::LastWordsOnTheirWay() {
  return absl::UnavailableError("it has ended, and what it sent last has not arrived");
}

// It has ended, and it is to be known soon whether what it said has arrived.
bool Task::AwaitLastWords() { return WaitEnded(kOrphanPatience); }

void Task::LetGo() {
  MutexLock network_lock(network_mutex_);
  packets_are_held_ = false;
  if (!Record().report().joined()) return;
  const auto lift = [&]() -> absl::Status {
    SIDING_ASSIGN_OR_RETURN(const UniqueFd network, OwnNetwork());
    return LiftNetwork(network.get());
  };
  if (const absl::Status status = lift(); !status.ok() && !absl::IsNotFound(status))
    spdlog::error("task {}: {}", name_, std::string(status.message()));
}

}  // namespace siding
