// What a job asks for: the part of a job that its submitter wrote. Only its priority and its walltime change
// later, if somebody asks for that (JobUpdated).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/units.h"

namespace siding {

// What a job takes from each of its nodes, or what a node has.
struct Resources {
  int slots = 1;
  Bytes memory;
  int gpus = 0;
  bool operator==(const Resources&) const = default;
  Resources& operator+=(const Resources& o) {
    slots += o.slots;
    memory += o.memory;
    gpus += o.gpus;
    return *this;
  }
  Resources& operator-=(const Resources& o) {
    slots -= o.slots;
    memory -= o.memory;
    gpus -= o.gpus;
    return *this;
  }
  bool Covers(const Resources& need) const {
    return slots >= need.slots && memory >= need.memory && gpus >= need.gpus;
  }
};

// What a job gives back that is frozen: all but its memory. What it had on GPUs has been brought there
// before.
inline Resources FreedByFreezing(Resources held) {
  held.memory = Bytes{0};
  return held;
}

// A way to take a job off its nodes.
enum class Method : uint8_t {
  kSuspend,     // freeze in place; memory stays in the node's RAM
  kCheckpoint,  // dump the processes into the store, then end them
  kApp,         // tell the program to save itself
  kKill,        // end it; work since the last durable checkpoint is lost
};
inline constexpr Method kAllMethods[] = {Method::kSuspend, Method::kCheckpoint, Method::kApp, Method::kKill};
std::string ToString(Method method);
absl::StatusOr<Method> ParseMethod(const std::string& name);

class MethodSet {
 public:
  MethodSet() = default;
  MethodSet(std::initializer_list<Method> methods) {
    for (Method m : methods) Add(m);
  }
  bool Has(Method m) const { return bits_ >> static_cast<int>(m) & 1; }
  void Add(Method m) { bits_ |= 1u << static_cast<int>(m); }
  void Remove(Method m) { bits_ &= ~(1u << static_cast<int>(m)); }
  bool empty() const { return bits_ == 0; }
  bool operator==(const MethodSet&) const = default;

 private:
  unsigned bits_ = 0;
};

// Where an image lies. Local: on the node that wrote it. Shared: every node can read it.
enum class Tier : uint8_t { kLocal, kShared };
std::string ToString(Tier tier);
absl::StatusOr<Tier> ParseTier(const std::string& name);
// Why no image goes to this node's tier that needs so much: its `problem`, whatever is free, or a lack of
// room; "" if it does.
std::string WhyNoRoom(Tier tier, const NodeId& node, Bytes free, Bytes needed, const std::string& problem);
// The same of the shared tier as a whole. `beside`: for what its room is kept besides; "": for nothing.
std::string WhyNoSharedRoom(Bytes free, Bytes needed, const std::string& beside = "");

// How a program that saves itself is told to, and how it continues afterwards.
struct AppMethod {
  int signal = 10;     // SIGUSR1
  std::string marker;  // file that the program writes when it has saved, and continues; empty: it exits
  Duration grace = std::chrono::seconds(30);  // after this the save has failed
  std::vector<std::string> restart_command;   // empty: the job's own command
};

// Without a marker only its end shows that it has saved.
inline bool ContinuesAfterSave(const AppMethod& app) { return !app.marker.empty(); }

// What its processes' exchange of GPU memory is like (docs/user/gpu.md).
enum class GpuCollectives : uint8_t {
  kUnsaid,     // as the policy says
  kAsIs,       // as the program and its libraries choose
  kDrainable,  // NCCL is set so that it can be taken off its GPUs
};
std::string ToString(GpuCollectives collectives);
absl::StatusOr<GpuCollectives> ParseGpuCollectives(const std::string& name);

// What becomes of a job that has lost all that it had done, its node having failed for instance.
enum class OnNodeFailure : uint8_t {
  kUnsaid,   // as kRequeue for a job on demand, and for one that may be killed; else as kPark
  kRequeue,  // it starts from the beginning by itself
  kPark,     // it waits until somebody says so
};
std::string ToString(OnNodeFailure what);
absl::StatusOr<OnNodeFailure> ParseOnNodeFailure(const std::string& name);

enum class JobKind : uint8_t { kBatch, kOnDemand };
std::string ToString(JobKind kind);

struct JobSpec {
  std::string name;
  JobKind kind = JobKind::kBatch;
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::string user;
  int nodes = 1;  // tasks are one a node, ranks 0..nodes-1
  Resources per_node;
  int priority = 0;  // higher goes first
  std::vector<std::string> command;
  std::map<std::string, std::string> env;
  std::string workdir;
  std::string output;  // absolute; %j is the job's id, %r the rank
  MethodSet methods;   // empty: not preemptible
  std::optional<AppMethod> app;
  Duration kill_grace = std::chrono::seconds(10);
  Duration notice{0};  // so long before it is frozen or dumped for others it is told; 0: not
  GpuCollectives gpu_collectives = GpuCollectives::kUnsaid;
  bool allow_io_uring = false;            // else it is kept from it if it may be checkpointed
  Duration checkpoint_interval{0};        // 0: only when preempted, or as the policy asks
  bool auto_checkpoint_interval = false;  // instead: by what an image costs and how often nodes fail
  bool keep_connections = false;  // its ranks have a network of their own; connections in it are checkpointed
  bool append_files = false;      // files that were open for appending may have been rotated at a restore
  std::optional<int> max_preemptions;
  OnNodeFailure on_node_failure = OnNodeFailure::kUnsaid;
  std::string cluster_manager;                // that starts its tasks; empty: siding does
  std::map<std::string, std::string> labels;  // what policies may ask for: partition, qos, account, ...
  // On-demand only.
  Time start_by;     // the deadline for the first instruction
  Time not_before;   // announced in advance: nothing is to be given to it earlier
  Duration hold{0};  // how long it will keep its nodes; 0: not said
  // Any job.
  Duration walltime{0};  // how long it may run; 0: as long as it likes
};

// What is to be changed of a job that has been submitted.
struct JobChange {
  std::optional<int> priority;
  std::optional<Duration> walltime;  // 0: none
};

// What a job runs is needed no more once it is over, and its user may have written megabytes. What accounting
// and explanations need stays. Not for the record of a cluster manager's job, which may be started again.
void DropContents(JobSpec& spec);
// The same, but for the command: its first kKeptCommand bytes, of kKeptWords words, stay, for those who look
// at the job later. Done twice it is as done once.
void DropAllButCommand(JobSpec& spec);
inline constexpr size_t kKeptCommand = 1000;
inline constexpr size_t kKeptWords = 64;

}  // namespace siding
