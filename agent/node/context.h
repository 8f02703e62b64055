// What all tasks of a node share. Constant after construction but for the members that are thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "agent/checkpoint/dump.h"
#include "agent/checkpoint/file_contents.h"
#include "agent/criu/criu.h"
#include "agent/gpu/huge_pages.h"
#include "agent/gpu/node_gpus.h"
#include "agent/network/address_towards.h"
#include "agent/node/forgotten.h"
#include "agent/node/job_tasks.h"
#include "agent/node/leftovers.h"
#include "agent/node/local_task_host.h"
#include "agent/node/rates.h"
#include "agent/os/fence.h"
#include "agent/os/freezer.h"
#include "agent/os/names.h"
#include "agent/pods/container_runtime.h"
#include "agent/pods/container_starts.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "store/store.h"

namespace siding {

struct HostContext {
  TaskHostOptions options;
  ReportSink& sink;
  const Clock& clock;
  std::string boot_id;
  std::unique_ptr<NodeCluster> cluster;
  JobTasks job_tasks;
  Freezer freezer;
  Fence fence;
  Freezer signals = Freezer::WithSignals();  // for tasks that a cluster manager keeps in its own cgroups
  std::unique_ptr<Criu> criu;                // null: see criu_problem
  std::string criu_path;
  CriuTraits criu_traits;
  std::string criu_problem;
  std::string no_packet_tables;  // why connections to elsewhere cannot be held back; empty: they can
  std::string no_network;        // why no rank can have a network of its own; empty: it can
  bool criu_as_user = false;
  // Opened at the start or, where that failed, as soon as it can be; from then on they stay.
  mutable Mutex stores_mutex;
  absl::StatusOr<std::unique_ptr<ImageStore>> local ABSL_GUARDED_BY(stores_mutex) =
      absl::UnavailableError("not opened");
  absl::StatusOr<std::unique_ptr<ImageStore>> shared ABSL_GUARDED_BY(stores_mutex) =
      absl::FailedPreconditionError("this node has no shared tier");
  std::shared_ptr<NodeGpus> gpus;         // null: not looked for. Looks that do not come back have it, too
  std::unique_ptr<HugePages> huge_pages;  // for drains; null: the system's setting is left alone
  std::unique_ptr<Rates> rates;
  Leftovers leftovers;
  FileContents contents;  // of files that dumps have seen
  std::unique_ptr<Forgotten> forgotten;
  std::unique_ptr<ContainerRuntime> containers;  // null: this node has no pods
  ContainerStarts container_starts;
  std::atomic<bool> stopping{false};

  // The tier's store, or why there is none.
  absl::StatusOr<ImageStore*> Store(v1::Tier tier) const {
    MutexLock lock(stores_mutex);
    const auto& store = tier == v1::SHARED ? shared : local;
    if (!store.ok()) return store.status();
    return store->get();
  }
  // Where the plain files of encrypted images lie for a moment.
  std::string PlainFolder() const {
    return options.plain_dir.empty() ? options.state_dir + "/plain" : options.plain_dir;
  }
  // At which other nodes reach the networks of ranks here.
  absl::StatusOr<std::string> GangAddress() const {
    if (options.gang_address.empty()) return AddressTowards(options.gang_towards);
    return options.gang_address;
  }
  // Tasks are given their GPUs by UUID.
  bool AssignsGpus() const { return gpus != nullptr && gpus->count() > 0; }
  // Why this node's CRIU is not used for that user's tasks; empty: it is. Between a checkpoint and its
  // restore, and during both, the user controls the names of a task's files: a folder that has become a
  // link leads anywhere. What CRIU then does as root cannot be checked before it has happened.
  std::string WhyNoCriuFor(uid_t uid) const {
    const std::string why = uid == 0 ? "" : WhyOnlyForRoot(criu_traits);
    return why.empty() ? "" : "this node's criu " + why;
  }
  // The user as which CRIU handles that user's tasks.
  CriuUser UserFor(const v1::JobSpec& spec) const {
    return {criu_as_user && spec.uid() != 0, spec.uid(), spec.gid()};
  }
  // The one that dumps them. Of pods, whose runtime starts it, it is root's.
  DumpingCriu CriuFor(uid_t uid, gid_t gid) const {
    DumpingCriu criu{criu_traits.kind(), std::nullopt};
    if (criu_as_user) criu.only_of = uid == 0 ? DumpingCriu::Ids{} : DumpingCriu::Ids{uid, gid};
    return criu;
  }
  // Why this node's CRIU is not to restore an image with that metadata: it would lose something without a
  // word, or fail each time. Empty: nothing is known against it.
  std::string WhyNotRestored(const std::map<std::string, std::string>& metadata) const {
    const auto needs = metadata.find(kMetadataNeedsOurs);
    if (needs == metadata.end() || criu_traits.kind() == CriuKind::kOurs) return "";
    return absl::StrCat("this node's criu ", criu_traits.version,
                        " would not restore all of it: ", needs->second,
                        "; the one that get-criu builds does");
  }
};

}  // namespace siding
