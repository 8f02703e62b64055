#include "agent/node/local_task_host.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <compare>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "agent/checkpoint/dump.h"
#include "agent/gpu/probe.h"
#include "agent/network/gang_network.h"
#include "agent/network/packet_tables.h"
#include "agent/node/context.h"
#include "agent/node/image_copies.h"
#include "agent/node/pod_task.h"
#include "agent/node/self_check.h"
#include "agent/node/task.h"
#include "agent/node/tier_watch.h"
#include "agent/node/work_queue.h"
#include "agent/os/names.h"
#include "agent/os/processes.h"
#include "agent/pods/pod_listener.h"
#include "agent/shim/shim_process.h"
#include "agent/task/json_file.h"
#include "agent/task/orders.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/mutex.h"
#include "common/status.h"
#include "common/tls/expiry_watch.h"
#include "spdlog/spdlog.h"
#include "store/disk.h"

namespace siding {
namespace {

constexpr char kHugePages[] = "/sys/kernel/mm/transparent_hugepage/enabled";
constexpr char kHugePagesHolders[] = "/run/siding-huge-pages";
constexpr Bytes kProbeMemory{1 << 30};  // on a GPU
// Of the images that are kept in memory.
constexpr auto kBetweenLists = std::chrono::minutes(1);
// How long a call for all reports waits for looks at tasks, at most: heartbeats make it.
constexpr auto kLookPatience = std::chrono::seconds(1);

std::string FirstLine(const std::string& path) {
  auto text = ReadFile(path);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string BesideThisProgram(const std::string& name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? name : (self.parent_path() / name).string();
}

// A task, and the cluster in which its job has that number: see v1::TaskRef.
struct TaskKey {
  TaskId id;
  int64_t cluster = 0;
  auto operator<=>(const TaskKey&) const = default;  // NOLINT(modernize-use-nullptr): there is none
};

TaskKey KeyOf(const v1::TaskRef& ref) { return {TaskIdOf(ref), ref.cluster()}; }

std::string FolderOf(const TaskKey& key) {
  return NameOutside(ToString(key.id), key.cluster == 0 ? "" : ClusterName(key.cluster));
}

// The task of a folder below tasks/. None: the folder is not a task's.
std::optional<TaskKey> TaskOfFolder(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  int64_t job = 0;
  TaskKey key;
  if (parts.size() < 3 || !absl::SimpleAtoi(parts[0], &job) ||
      !absl::SimpleAtoi(parts[1], &key.id.incarnation) || !absl::SimpleAtoi(parts[2], &key.id.rank))
    return std::nullopt;
  if (parts.size() > 3 && !absl::SimpleHexAtoi(parts[3], &key.cluster)) return std::nullopt;
  key.id.job = JobId(job);
  if (FolderOf(key) != name) return std::nullopt;
  return key;
}

// What an agent that died left beside the files that it was about to replace. The folder has one agent.
void RemoveHalfWritten(const std::string& folder) {
  const auto names = ListFolder(folder);
  if (!names.ok()) return spdlog::error("{}", std::string(names.status().message()));
  for (const std::string& name : *names) {
    if (name.find(".tmp.") != std::string::npos) unlink((folder + "/" + name).c_str());
  }
}

// Who can write there could lead root's files elsewhere. What is mounted in memory is everybody's, unless it
// is said otherwise.
absl::Status CheckLocalFolder(const std::string& folder) {
  for (const std::string below : {"", "/images", "/staging", "/tier"}) {
    const std::string path = folder + below;
    struct stat info = {}, link = {};
    if (lstat(path.c_str(), &link) != 0) continue;  // it is made, or the error is the store's
    // The folder itself may be a link of ours to where there is room.
    info = link;
    if (below.empty() && S_ISLNK(link.st_mode) && link.st_uid == geteuid() && stat(path.c_str(), &info) != 0)
      continue;
    if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0)
      continue;
    return absl::FailedPreconditionError(path +
                                         " is not the agent's alone: expected a folder of its user's, and "
                                         "nobody else who may write (mode=0700)");
  }
  return absl::OkStatus();
}

class LocalTaskHost final : public TaskHost {
 public:
  LocalTaskHost(TaskHostOptions options, ReportSink& sink, const Clock& clock)
      : tasks_folder_(options.state_dir + "/tasks"),
        host_{.options = std::move(options), .sink = sink, .clock = clock, .freezer = Freezer::Detect("")} {
    host_.boot_id = FirstLine("/proc/sys/kernel/random/boot_id");
    host_.freezer = Freezer::Detect(host_.options.node);
    host_.fence = Fence::Detect(host_.options.node, host_.options.fence);
    keeps_local_room_ = !host_.options.local_dir.empty();
    if (host_.options.local_dir.empty()) host_.options.local_dir = host_.options.state_dir + "/store";
    if (host_.options.shim_path.empty()) host_.options.shim_path = BesideThisProgram("siding-shim");
    if (host_.options.init_path.empty()) host_.options.init_path = BesideThisProgram("siding-init");
    if (host_.options.gpu_helper_path.empty())
      host_.options.gpu_helper_path = BesideThisProgram("siding-gpu-helper");
    if (host_.options.gpu_probe_path.empty())
      host_.options.gpu_probe_path = BesideThisProgram("siding-gpu-probe");
    if (absl::Status status = MakeDirectories(tasks_folder_, 0700); !status.ok()) {
      spdlog::error("{}", std::string(status.message()));
    }
    RemoveHalfWritten(host_.options.state_dir);
    host_.cluster = std::make_unique<NodeCluster>(host_.options.state_dir + "/cluster");
    host_.forgotten = std::make_unique<Forgotten>(host_.options.state_dir + "/forgotten", host_.leftovers);
    host_.rates = std::make_unique<Rates>(host_.options.state_dir + "/rates.json");
    OpenStore(v1::LOCAL);
    OpenStore(v1::SHARED);
    StartScrubber();
    LookForGpus();
    LookForCriu();
    LookForGangNetworks();
    if (!host_.options.pods_socket.empty())
      host_.containers = NewRunc(host_.options.runc, std::filesystem::path(host_.criu_path).parent_path(),
                                 host_.options.runc_patience);
  }

  // Before everything else. An error: what is on this node is not known, so nothing may be said of it.
  absl::Status Begin() {
    host_.forgotten->GoOn();
    SIDING_RETURN_IF_ERROR(AdoptTasks());
    if (host_.containers) {
      SIDING_ASSIGN_OR_RETURN(pod_listener_,
                              PodListener::Start(host_.options.pods_socket, host_.container_starts));
    }
    ProbeGpus();
    certificate_ = std::make_unique<ExpiryWatch>(host_.options.certificate, host_.clock);
    self_check_ = std::make_unique<SelfCheck>(WhatStartsNeed(), host_.clock);
    local_watch_ = std::make_unique<TierWatch>([this] { return LookAt(v1::LOCAL); }, host_.clock);
    shared_watch_ = std::make_unique<TierWatch>([this] { return LookAt(v1::SHARED); }, host_.clock);
    spdlog::info("node {}: {} tasks found, freezes by {}, criu {}", host_.options.node, Tasks().size(),
                 ToString(host_.freezer.kind()), host_.criu ? host_.criu_traits.version : host_.criu_problem);
    return absl::OkStatus();
  }

  ~LocalTaskHost() override {
    host_.stopping = true;
    MutexLock lock(mutex_);
    tasks_.clear();
  }

  void Execute(const v1::ToAgent& command) override {
    if (command.has_welcome()) return host_.cluster->Join(command.welcome().cluster());
    FaultHere<"agent.order: an order has come">();
    switch (command.what_case()) {
      case v1::ToAgent::WHAT_NOT_SET:
        return;
      case v1::ToAgent::kVerify:
        work_queue_.Add([this, command] { Verify(command); });
        return;
      case v1::ToAgent::kCopy:
        return copies_.Order(command.copy(), [this, command](const absl::Status& made) {
          const v1::CopyCheckpoint& order = command.copy();
          if (made.ok()) scrubber_->Forget(v1::SHARED, {CheckpointId(order.checkpoint()), order.rank()});
          v1::FromAgent message;
          Result(message, command, made);
          host_.sink.Send(std::move(message));
        });
      case v1::ToAgent::kDelete:
        deletions_.Add([this, command] { Delete(command); });
        return;
      case v1::ToAgent::kForget:
        return Forget(Ordered(command));
      case v1::ToAgent::kLetStart:
        return host_.container_starts.Let(command.pod().uid());
      case v1::ToAgent::kRefuseStart:
        return host_.container_starts.Refuse(command.pod().uid());
      default:
        break;
    }
    const TaskKey key = Ordered(command);
    const bool makes = command.has_launch() || command.has_restore();
    if (makes && command.has_pod()) ForgetEarlierPod(key, command);
    if (std::shared_ptr<HostedTask> task = makes ? FindOrMakeTask(key, command) : FindTask(key))
      return task->Execute(command);
    SendUnknown(command);
  }

  absl::StatusOr<std::string> ExpectShim(const v1::ToAgent& start, const GpuAllocation& gpus,
                                         std::function<void(absl::Status)> ready) override {
    const TaskKey key = KeyOf(start.task());
    const TaskId& id = key.id;
    Forget(key);  // one of the same name that is over: cluster managers may count from 1 again
    if (FindTask(key)) return absl::AlreadyExistsError("task " + ToString(id) + " is on this node already");
    const auto script = std::dynamic_pointer_cast<Task>(
        id.rank > 0 ? FindTask({{id.job, id.incarnation, 0}, key.cluster}) : nullptr);
    if (script) script->NoteStep();
    const auto task = std::dynamic_pointer_cast<Task>(FindOrMakeTask(key, start));
    if (!task) return absl::UnavailableError("the agent cannot write to its state folder");
    task->ExpectShim(start, gpus, std::move(ready));
    return tasks_folder_ + "/" + FolderOf(key);
  }

  absl::StatusOr<std::vector<ImageKey>> Images(v1::Tier tier) override {
    SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(tier));
    return store->List();
  }

  std::vector<v1::TaskReport> Reports() override {
    const std::vector<std::shared_ptr<HostedTask>> tasks = Tasks();
    for (const auto& task : tasks) task->RecordAgain();
    std::vector<v1::TaskReport> reports;
    // All of them together: what is not seen by then is said as it was seen last.
    const auto until = std::chrono::steady_clock::now() + kLookPatience;
    for (const auto& task : tasks) reports.push_back(task->Report(until));
    return reports;
  }

  v1::Hello Describe() override {
    v1::Hello hello;
    hello.set_node(host_.options.node);
    hello.set_boot_id(host_.boot_id);
    *hello.mutable_capacity() = host_.options.capacity;
    hello.mutable_capacity()->set_memory(MemoryForJobs());
    lists_ = 0;
    if (auto kept = Kept()) *hello.mutable_kept() = *std::move(kept);
    hello.set_has_shared(!host_.options.shared_dir.empty());
    hello.set_version(SIDING_VERSION);
    if (host_.criu) {
      hello.set_criu(
          absl::StrCat(host_.criu_traits.version, host_.criu_as_user ? ", as the job's user" : ", as root",
                       host_.no_packet_tables.empty() ? "" : ", without connections to elsewhere"));
    }
    hello.set_criu_problem(host_.criu_problem);
    hello.set_problem(self_check_->problem());
    hello.set_keeps_connections(host_.no_network.empty());
    hello.set_no_network(host_.no_network);
    // Those of a cluster manager are fenced by it.
    if (!host_.options.cluster_manager) hello.set_fence_problem(host_.fence.problem());
    if (host_.gpus != nullptr) {
      if (hello.capacity().gpus() > 0) hello.set_gpu_problem(host_.gpus->problem());
      for (const auto& [uuid, name] : host_.gpus->names()) {
        v1::Gpu& gpu = *hello.add_gpus();
        gpu.set_uuid(uuid);
        gpu.set_name(name);
      }
    }
    for (v1::TaskReport& report : Reports()) *hello.add_tasks() = std::move(report);
    return hello;
  }

  v1::Heartbeat Measure() override {
    v1::Heartbeat heartbeat;
    heartbeat.set_ram_available(AvailableMemory().value);
    heartbeat.set_problem(self_check_->problem());
    heartbeat.set_local_disk_free(local_watch_->free().value);
    heartbeat.set_shared_disk_free(shared_watch_->free().value);
    *heartbeat.mutable_local() = host_.rates->Get(Medium::kLocal);
    *heartbeat.mutable_shared() = host_.rates->Get(Medium::kShared);
    *heartbeat.mutable_gpu() = host_.rates->Get(Medium::kGpu);
    AddLocalInMemory(heartbeat);
    for (v1::DamagedImage& image : scrubber_->Damaged()) *heartbeat.add_damaged() = std::move(image);
    heartbeat.set_scrubbed_bytes(scrubber_->read().value);
    for (v1::ImageCopy& copy : copies_.UnderWay()) *heartbeat.add_copies() = std::move(copy);
    heartbeat.set_copied_bytes(copies_.written().value);
    if (const auto ends = certificate_->Look()) heartbeat.set_certificate_ends_us(ToMicros(*ends));
    ProbeGpus();
    for (v1::TaskReport& report : Reports()) *heartbeat.add_tasks() = std::move(report);
    return heartbeat;
  }

 private:
  absl::StatusOr<std::unique_ptr<ImageStore>> OpenStoreAt(v1::Tier tier, const std::string& root) const {
    const bool shared = tier == v1::SHARED;
    if (!shared) SIDING_RETURN_IF_ERROR(CheckLocalFolder(root));
    return OpenDirectoryStore(
        root, {.keys = host_.options.keys,
               .plain_folder = host_.PlainFolder(),
               .remembered = host_.options.state_dir + (shared ? "/shared-tier" : "/local-tier"),
               .boot = host_.boot_id});
  }

  // If it is not open: a file system may be mounted after the agent has started.
  void OpenStore(v1::Tier tier) {
    const bool shared = tier == v1::SHARED;
    const std::string root = shared ? host_.options.shared_dir : host_.options.local_dir;
    const absl::Status before = host_.Store(tier).status();
    if (before.ok() || root.empty()) return;
    absl::StatusOr<std::unique_ptr<ImageStore>> opened = OpenStoreAt(tier, root);
    if (!opened.ok()) opened = TierProblem(opened.status());
    if (!opened.ok() && opened.status() != before)
      spdlog::error("store {}: {}", root, std::string(opened.status().message()));
    const bool open = opened.ok();
    {
      MutexLock lock(host_.stores_mutex);
      (shared ? host_.shared : host_.local) = std::move(opened);
    }
    if (!open) return;
    if (!shared) local_in_memory_ = (*host_.Store(tier))->IsInMemory();
    // Before there was a choice it was this one.
    host_.rates->IsAt(MediumOf(tier), root, shared ? root : host_.options.state_dir + "/store");
    if (host_.rates->Has(MediumOf(tier))) return;
    work_queue_.Add([this, root, tier] {
      if (absl::Status status = ProbeTier(root, MediumOf(tier), *host_.rates); !status.ok()) {
        spdlog::warn("the speed of {} could not be measured: {}", root, std::string(status.message()));
      }
    });
  }

  // A cluster manager has cgroups and programs of its own.
  StartNeeds WhatStartsNeed() const {
    if (host_.options.cluster_manager) return {host_.options.state_dir, "", {}, host_.signals, {}};
    return {host_.options.state_dir,
            "/tmp",
            {host_.options.shim_path, host_.options.init_path},
            host_.freezer,
            LookForNamespaces()};
  }

  // The room in a tier.
  Bytes LookAt(v1::Tier tier) {
    OpenStore(tier);
    scrubber_->ForgetDeleted(tier);
    const auto store = host_.Store(tier);
    return store.ok() ? (*store)->FreeSpace().value_or(Bytes{0}) : Bytes{0};
  }

  // The room that it still has is kept for it: jobs cannot have that memory, and it is no more than there is.
  void AddLocalInMemory(v1::Heartbeat& heartbeat) {
    if (!local_in_memory_) return;
    heartbeat.set_local_in_memory(true);
    const int64_t available = heartbeat.ram_available();
    heartbeat.set_local_disk_free(std::min(heartbeat.local_disk_free(), available));
    if (keeps_local_room_)
      heartbeat.set_ram_available(std::max<int64_t>(1, available - heartbeat.local_disk_free()));
    const auto now = std::chrono::steady_clock::now();
    // A list is compared with what counted when the one before was heard, so the second one soon follows.
    if (lists_ >= 2 && now < last_list_ + kBetweenLists) return;
    if (auto kept = Kept()) *heartbeat.mutable_kept() = *std::move(kept);
  }

  // All images of the local tier, if that is in memory: what a controller knows beside them is gone. It waits
  // for no disk.
  std::optional<v1::KeptImages> Kept() {
    const auto store = host_.Store(v1::LOCAL);
    if (!local_in_memory_ || !store.ok()) return std::nullopt;
    const auto images = (*store)->List();
    if (!images.ok()) return std::nullopt;
    ++lists_;
    last_list_ = std::chrono::steady_clock::now();
    v1::KeptImages kept;
    for (const ImageKey& image : *images) {
      v1::KeptImage& named = *kept.add_images();
      named.set_checkpoint(image.checkpoint.value());
      named.set_rank(image.rank);
    }
    return kept;
  }

  // Without what a local tier in memory may take of it, where jobs may use all.
  int64_t MemoryForJobs() const {
    const int64_t all = host_.options.capacity.memory();
    if (!host_.options.all_memory || !local_in_memory_ || !keeps_local_room_) return all;
    const int64_t tier = store::SizeInMemory(host_.options.local_dir).value;
    if (tier >= all)
      spdlog::error(
          "--local-dir {} may take {} of memory, and this node has {}: jobs get none; give it a size",
          host_.options.local_dir, FormatBytes(Bytes{tier}), FormatBytes(Bytes{all}));
    return std::max<int64_t>(0, all - tier);
  }

  // Of the shared tier each node reads back what it has made itself.
  void StartScrubber() {
    const auto store = [this](v1::Tier tier) {
      return [this, tier]() -> const ImageStore* { return host_.Store(tier).value_or(nullptr); };
    };
    const auto all = [](const Manifest&) { return true; };
    const auto own = [this](const Manifest& manifest) {
      const auto node = manifest.metadata.find(kMetadataNode);
      return node != manifest.metadata.end() && node->second == host_.options.node;
    };
    std::vector<Scrubber::Tier> tiers = {{v1::LOCAL, store(v1::LOCAL), all},
                                         {v1::SHARED, store(v1::SHARED), own}};
    scrubber_ = std::make_unique<Scrubber>(host_.options.scrub, host_.options.state_dir + "/scrubbed",
                                           std::move(tiers), host_.clock);
    scrubber_->Start();
  }

  void LookForGangNetworks() {
    host_.no_network = geteuid() == 0 ? WhyNoGangNetwork() : "it needs root";
    // Another does not say when it has stopped a rank.
    if (host_.no_network.empty() && host_.criu && host_.criu_traits.kind() != CriuKind::kOurs)
      host_.no_network = absl::StrCat("it needs the criu that get-criu builds, not ", host_.criu_path);
    if (!host_.no_network.empty())
      spdlog::warn("no job can keep its connections on this node: {}", host_.no_network);
  }

  // Where there is no driver, GPUs that the administrator has named are counted, and that is all.
  void LookForGpus() {
    if (!host_.options.gpu_libraries) return;
    const GpuLibraries& libraries = *host_.options.gpu_libraries;
    v1::Resources& capacity = host_.options.capacity;
    const int most = capacity.gpus() < 0 ? INT_MAX : capacity.gpus();
    host_.gpus = std::make_shared<NodeGpus>(NewGpuDriver(host_.options.gpu_helper_path, libraries), most,
                                            host_.options.gpu_uuids);
    if (capacity.gpus() < 0) capacity.set_gpus(0);
    if (!host_.AssignsGpus()) return;
    capacity.set_gpus(host_.gpus->count());
    if (host_.options.huge_pages)
      host_.huge_pages = std::make_unique<HugePages>(kHugePages, kHugePagesHolders);
  }

  // Until there is a job to measure. Tried again where all GPUs were in use.
  void ProbeGpus() {
    if (!host_.AssignsGpus() || !host_.gpus->problem().empty() || host_.rates->Has(Medium::kGpu)) return;
    if (probing_.exchange(true)) return;
    work_queue_.Add([this] {
      const auto huge = host_.huge_pages ? host_.huge_pages->Take() : nullptr;
      const auto probe = ProbeGpu(*host_.gpus, host_.options.cluster_manager, host_.options.gpu_probe_path,
                                  host_.options.gpu_libraries->cuda, kProbeMemory);
      probing_ = false;
      if (!probe.ok()) {
        spdlog::warn("the speed of the GPUs could not be measured: {}",
                     std::string(probe.status().message()));
        return;
      }
      host_.rates->Add(Medium::kGpu, Transfer::kDump, probe->bytes, probe->drain);
      host_.rates->Add(Medium::kGpu, Transfer::kRestore, probe->bytes, probe->refill);
    });
  }

  void LookForCriu() {
    auto path = FindCriu(host_.options.criu_path);
    if (!path.ok()) {
      host_.criu_problem = std::string(path.status().message());
      return;
    }
    if (geteuid() != 0) {
      host_.criu_problem = "checkpoints need root";
      return;
    }
    auto criu = NewCriu(*path);
    const auto start = std::chrono::steady_clock::now();
    auto traits = criu->Check();
    if (!traits.ok()) {
      host_.criu_problem = *path + ": " + std::string(traits.status().message());
      return;
    }
    // Until there is a dump to measure, starting CRIU is all that is known of its overhead.
    const auto took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start);
    for (v1::Tier tier : {v1::LOCAL, v1::SHARED}) {
      if (host_.rates->Has(MediumOf(tier))) continue;
      for (Transfer transfer : {Transfer::kDump, Transfer::kRestore}) {
        host_.rates->Add(MediumOf(tier), transfer, Bytes{0}, took);
      }
    }
    host_.criu = std::move(criu);
    host_.criu_path = *path;
    host_.criu_traits = *std::move(traits);
    host_.criu_as_user = CriuMustRunAsUser();
    if (const std::string why = WhyOnlyForRoot(host_.criu_traits); !why.empty())
      spdlog::warn("only root's jobs are checkpointed: {} {}", *path, why);
    LookForPacketTables();
  }

  // Another criu makes tables that stay when it is killed, which any kernel knows.
  void LookForPacketTables() {
    if (host_.criu_traits.kind() != CriuKind::kOurs) return;
    const absl::Status status = TryPacketTable();
    if (status.ok() || absl::IsUnavailable(status)) return;
    host_.no_packet_tables = absl::StrCat("this node's kernel cannot hold back their packets (",
                                          status.message(), "; it takes nftables of Linux 5.12)");
    spdlog::warn("jobs with connections to elsewhere are not checkpointed: {}", host_.no_packet_tables);
  }

  std::vector<std::shared_ptr<HostedTask>> Tasks() {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<HostedTask>> tasks;
    tasks.reserve(tasks_.size());
    for (const auto& [key, task] : tasks_) tasks.push_back(task);
    return tasks;
  }

  absl::Status AdoptTasks() {
    const auto names = ListFolder(tasks_folder_);
    // Without the folder, which could not be made, there is nothing in it.
    if (!names.ok() && !absl::IsNotFound(names.status())) return names.status();
    if (names.ok()) {
      MutexLock lock(mutex_);
      for (const std::string& name : *names) SIDING_RETURN_IF_ERROR(FindAgain(name));
    }
    // When it is known what each of them holds.
    FaultHere<"agent.found: the tasks of an earlier agent are found">();
    for (const std::shared_ptr<HostedTask>& task : Tasks()) task->Adopt();
    return absl::OkStatus();
  }

  // The task of a folder below tasks/.
  absl::Status FindAgain(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string folder = tasks_folder_ + "/" + name;
    auto record = ReadJsonFile<agent::TaskRecord>(folder + "/task.json");
    if (record.ok()) {
      const TaskKey key = KeyOf(record->report().task());
      Keep(key, folder, *std::move(record));
      return absl::OkStatus();
    }
    // Made by an agent that died before it could do anything else.
    if (absl::IsNotFound(record.status()) && rmdir(folder.c_str()) == 0) return absl::OkStatus();
    spdlog::error("{}: {}", folder, std::string(record.status().message()));
    const auto key = TaskOfFolder(name);
    if (!key) return absl::OkStatus();
    // Its name is all that is known of it, and it may live: not to be told of would be to say that it is
    // gone. It is ended, and judged by what its shim has left.
    SIDING_RETURN_IF_ERROR(EndShim(folder));
    agent::TaskRecord rest = NewRecord(*key);
    if (const auto request = ReadJsonFile<agent::ShimRequest>(folder + "/request.json"); request.ok()) {
      rest.set_cluster(request->cluster());
      rest.set_begun_in(request->begun_in());
    }
    Keep(*key, folder, std::move(rest));
    return absl::OkStatus();
  }

  static agent::TaskRecord NewRecord(const TaskKey& key) {
    agent::TaskRecord record;
    if (key.cluster != 0) record.mutable_report()->mutable_task()->set_cluster(key.cluster);
    return record;
  }

  std::shared_ptr<HostedTask> Keep(const TaskKey& key, const std::string& folder, agent::TaskRecord record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::shared_ptr<HostedTask>& task = tasks_[key];
    if (record.has_pod()) {
      task = std::make_shared<PodTask>(host_, key.id, folder, std::move(record));
    } else {
      task = std::make_shared<Task>(host_, key.id, folder, std::move(record));
    }
    return task;
  }

  // The task that an order is for: of the cluster that it names, else of the one that this node works for. A
  // task that says nothing of its cluster is of whichever asks, and so is every task for an order of none.
  TaskKey Ordered(const v1::ToAgent& command) {
    TaskKey key = KeyOf(command.task());
    if (key.cluster == 0) key.cluster = host_.cluster->Number();
    MutexLock lock(mutex_);
    if (tasks_.contains(key)) return key;
    const auto first = tasks_.lower_bound({key.id, 0});
    const bool is_it =
        first != tasks_.end() && first->first.id == key.id && (key.cluster == 0 || first->first.cluster == 0);
    if (is_it) return first->first;
    if (command.has_pod()) key.cluster = 0;  // what is written on a pod stays when controllers change
    return key;
  }

  // Null: it is not known.
  std::shared_ptr<HostedTask> FindTask(const TaskKey& key) {
    MutexLock lock(mutex_);
    const auto it = tasks_.find(key);
    return it == tasks_.end() ? nullptr : it->second;
  }

  // Null: it is not known, and its folder could not be made.
  std::shared_ptr<HostedTask> FindOrMakeTask(const TaskKey& key, const v1::ToAgent& start) {
    MutexLock lock(mutex_);
    // What is removed has the same names.
    left_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !leaving_.contains(key); });
    auto it = tasks_.find(key);
    if (it != tasks_.end()) return it->second;
    if (start.has_pod() && !host_.containers) return nullptr;
    const std::string folder = tasks_folder_ + "/" + FolderOf(key);
    absl::Status status = MakeDirectories(folder, 0700);
    status.Update(FaultAt<"agent.folder: the folder of a new task is made, and empty">());
    if (!status.ok()) {
      spdlog::error("{}", std::string(status.message()));
      rmdir(folder.c_str());
      return nullptr;
    }
    agent::TaskRecord record = NewRecord(key);
    if (start.has_pod()) {
      record.set_externally_managed(true);
      *record.mutable_pod()->mutable_pod() = start.pod();
    }
    return Keep(key, folder, std::move(record));
  }

  void Forget(const TaskKey& key) {
    std::shared_ptr<HostedTask> task;
    {
      MutexLock lock(mutex_);
      auto it = tasks_.find(key);
      if (it == tasks_.end() || !it->second->CanForget()) return;
      task = std::move(it->second);
      tasks_.erase(it);
      leaving_.insert(key);
    }
    FaultHere<"agent.forget: a task is forgotten, its folder and cgroup are still there">();
    task->RemoveTraces();
    task.reset();
    {
      MutexLock lock(mutex_);
      leaving_.erase(key);
    }
    left_.NotifyAll();
  }

  // The start of a pod that went before it was recorded has the number of the next pod's, too.
  void ForgetEarlierPod(const TaskKey& key, const v1::ToAgent& start) {
    const auto task = std::dynamic_pointer_cast<PodTask>(FindTask(key));
    if (task && task->pod().uid() != start.pod().uid()) Forget(key);
  }

  // What is not known here was never started, or is forgotten: its end is what the controller wants to hear.
  void SendUnknown(const v1::ToAgent& command) {
    v1::FromAgent message;
    v1::TaskReport& report = *message.mutable_report();
    *report.mutable_task() = command.task();
    const bool start = command.has_launch() || command.has_restore();
    report.set_phase(start ? (command.has_launch() ? v1::LAUNCH_FAILED : v1::RESTORE_FAILED) : v1::LOST);
    report.set_node_problem(start);
    report.set_error(start ? command.has_pod() && !host_.containers
                                 ? "this agent was not told to serve pods (--pods-socket)"
                                 : "the agent cannot write to its state folder"
                           : "there is no such task on this node");
    host_.sink.Send(std::move(message));
  }

  void Verify(const v1::ToAgent& command) {
    const v1::VerifyCheckpoint& verify = command.verify();
    const auto check = [&]() -> absl::StatusOr<Manifest> {
      auto store = host_.Store(verify.tier());
      if (!store.ok()) return store.status();
      return (*store)->Verify({CheckpointId(verify.checkpoint()), verify.rank()},
                              {.digest = verify.image_digest()});
    };
    const auto manifest = check();
    v1::FromAgent message;
    v1::OpResult& result = Result(message, command, manifest.status());
    if (manifest.ok()) {
      for (const ImageFileEntry& entry : manifest->files) {
        v1::ImageFile& file = *result.add_files();
        file.set_name(entry.name);
        file.set_size(entry.size.value);
        file.set_checksum(entry.checksum);
      }
    }
    host_.sink.Send(std::move(message));
  }

  void Delete(const v1::ToAgent& command) {
    const v1::DeleteCheckpoint& order = command.delete_();
    const ImageKey key{CheckpointId(order.checkpoint()), order.rank()};
    absl::Status status = copies_.CallOff(key);
    if (status.ok()) status = DeleteFrom(order.tier(), key);
    if (status.ok() && order.copy_too() && !host_.options.shared_dir.empty())
      status = DeleteFrom(v1::SHARED, key);
    v1::FromAgent message;
    Result(message, command, status);
    host_.sink.Send(std::move(message));
  }

  absl::Status DeleteFrom(v1::Tier tier, const ImageKey& key) {
    SIDING_ASSIGN_OR_RETURN(ImageStore* const store, host_.Store(tier));
    return store->Delete(key);
  }

  static v1::OpResult& Result(v1::FromAgent& message, const v1::ToAgent& command,
                              const absl::Status& status) {
    v1::OpResult& result = *message.mutable_result();
    result.set_op(command.op());
    result.set_code(static_cast<int>(status.code()));
    result.set_message(std::string(status.message()));
    return result;
  }

  const std::string tasks_folder_;
  HostContext host_;
  Mutex mutex_;
  CondVar left_;
  std::map<TaskKey, std::shared_ptr<HostedTask>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::set<TaskKey> leaving_ ABSL_GUARDED_BY(mutex_);  // their traces are being removed
  std::atomic<bool> probing_{false};
  // Not where a whole machine is in memory, state folder and all: that is half of it, and is not for images.
  bool keeps_local_room_ = false;
  std::atomic<bool> local_in_memory_{false};
  // Of kept images on this connection; the thread that describes the node measures it, too.
  int lists_ = 0;
  std::chrono::steady_clock::time_point last_list_;
  std::unique_ptr<Scrubber> scrubber_;
  ImageCopies copies_{[this](v1::Tier tier) { return host_.Store(tier); }};
  // Behind the others, for they use them. Room on the disk does not wait until images have been read.
  WorkQueue work_queue_;
  WorkQueue deletions_;
  std::unique_ptr<SelfCheck> self_check_;
  std::unique_ptr<ExpiryWatch> certificate_;
  std::unique_ptr<TierWatch> local_watch_, shared_watch_;  // last, for the same reason
  std::unique_ptr<PodListener> pod_listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TaskHost>> NewTaskHost(TaskHostOptions options, ReportSink& sink,
                                                      const Clock& clock) {
  auto host = std::make_unique<LocalTaskHost>(std::move(options), sink, clock);
  SIDING_RETURN_IF_ERROR(host->Begin());
  return host;
}

}  // namespace siding
