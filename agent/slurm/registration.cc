#include "agent/slurm/registration.h"

#include <functional>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/ids.h"
#include "common/message_limits.h"
#include "common/packets.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr int64_t kOperationsPerIncarnation = 1'000'000;  // see docs/design/README.md

using Lines = std::map<std::string, std::string>;

absl::StatusOr<int64_t> TakeNumber(const Lines& lines, const std::string& key, int64_t most,
                                   std::optional<int64_t> otherwise = {}) {
  const auto line = lines.find(key);
  if (line == lines.end()) {
    if (otherwise) return *otherwise;
    return absl::InvalidArgumentError("the registration lacks the line '" + key + "'");
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(line->second, &number) || number < 0 || number > most) {
    return absl::InvalidArgumentError(absl::StrCat("the registration's line '", key, " ", line->second,
                                                   "': expected a number from 0 to ", most));
  }
  return number;
}

absl::StatusOr<unsigned> TakeMethods(const Lines& lines) {
  const auto line = lines.find("methods");
  if (line == lines.end()) return 0;
  spank::Options options;
  if (const char* problem = spank::Set(options, spank::Flag::kPreemptible, line->second.c_str()))
    return absl::InvalidArgumentError(absl::StrCat("the registration's line 'methods': ", problem));
  return options.methods;
}

absl::StatusOr<spank::Options> TakeOptions(const Lines& lines) {
  constexpr int64_t kLongest = kLongestDuration.count();
  spank::Options options;
  options.preemptible = true;  // others do not register
  SIDING_ASSIGN_OR_RETURN(options.methods, TakeMethods(lines));
  SIDING_ASSIGN_OR_RETURN(options.checkpoint_interval_us,
                          TakeNumber(lines, "checkpoint-interval-us", kLongest, 0));
  SIDING_ASSIGN_OR_RETURN(options.checkpoint_signal, TakeNumber(lines, "checkpoint-signal", 64, 0));
  SIDING_ASSIGN_OR_RETURN(options.signal_grace_us, TakeNumber(lines, "signal-grace-us", kLongest, 0));
  SIDING_ASSIGN_OR_RETURN(options.notice_us, TakeNumber(lines, "notice-us", spank::kMostNoticeUs, 0));
  SIDING_ASSIGN_OR_RETURN(const int collectives,
                          TakeNumber(lines, "gpu-collectives", spank::kMostCollectives, 0));
  options.gpu_collectives = static_cast<spank::Collectives>(collectives);
  SIDING_ASSIGN_OR_RETURN(const int io_uring, TakeNumber(lines, "allow-io-uring", 1, 0));
  options.allow_io_uring = io_uring != 0;
  SIDING_ASSIGN_OR_RETURN(options.max_preemptions, TakeNumber(lines, "max-preemptions", 1'000'000, -1));
  SIDING_ASSIGN_OR_RETURN(options.append_files, TakeNumber(lines, "append-files", 1, 0));
  SIDING_ASSIGN_OR_RETURN(options.keep_connections, TakeNumber(lines, spank::kKeepConnections, 1, 0));
  return options;
}

// The number behind the prefix; 0 if the checkpoint is another job's.
int64_t NumberOf(const CheckpointId& checkpoint, const std::string& prefix) {
  absl::string_view rest = checkpoint.value();
  int64_t number = 0;
  return absl::ConsumePrefix(&rest, prefix) && absl::SimpleAtoi(rest, &number) ? number : 0;
}

v1::JobSpec SpecOf(const spank::Registration& r) {
  v1::JobSpec spec;
  spec.set_name(absl::StrCat("slurm job ", r.job));
  spec.set_cluster_manager("slurm");
  spec.set_nodes(static_cast<int>(r.tasks));
  spec.set_uid(r.uid);
  spec.set_gid(r.gid);
  spec.set_command_checksum(r.command);
  const spank::Options& o = r.options;
  // Migration is a checkpoint that is restored elsewhere, which Slurm decides.
  const unsigned methods = o.methods != 0 ? o.methods
                                          : spank::kSuspend | spank::kCheckpoint | spank::kKill |
                                                (o.checkpoint_signal != 0 ? +spank::kApp : 0u);
  if ((methods & spank::kSuspend) != 0) spec.add_methods(v1::SUSPEND);
  if ((methods & (spank::kCheckpoint | spank::kMigrate)) != 0) spec.add_methods(v1::CHECKPOINT);
  if ((methods & spank::kApp) != 0) spec.add_methods(v1::APP);
  if ((methods & spank::kKill) != 0) spec.add_methods(v1::KILL);
  if (o.checkpoint_signal != 0) {
    spec.mutable_app()->set_signal(o.checkpoint_signal);
    spec.mutable_app()->set_grace_us(o.signal_grace_us);
  }
  spec.set_checkpoint_interval_us(o.checkpoint_interval_us);
  spec.set_notice_us(o.notice_us);
  if (o.gpu_collectives == spank::Collectives::kAsIs) spec.set_gpu_collectives(v1::AS_IS);
  if (o.gpu_collectives == spank::Collectives::kDrainable) spec.set_gpu_collectives(v1::DRAINABLE);
  spec.set_allow_io_uring(o.allow_io_uring);
  spec.set_append_files(o.append_files);
  spec.set_keep_connections(o.keep_connections);
  if (o.max_preemptions >= 0) spec.set_max_preemptions(o.max_preemptions);
  return spec;
}

}  // namespace

absl::StatusOr<Registered> ParseRegistration(const std::string& text) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  SIDING_ASSIGN_OR_RETURN(const KeysAndValues all, ParsePacket(text, "siding-register", spank::kVersion));
  Lines lines;
  for (const auto& line : all) {
    if (!lines.insert(line).second)
      return absl::InvalidArgumentError("the registration has the line '" + line.first + "' twice");
  }
  Registered registered;
  spank::Registration& r = registered.task;
  SIDING_ASSIGN_OR_RETURN(r.job, TakeNumber(lines, "job", kMost));
  if (lines["step"] == "batch") {
    r.step = spank::kBatchStep;
  } else {
    SIDING_ASSIGN_OR_RETURN(r.step, TakeNumber(lines, "step", std::numeric_limits<int>::max()));
  }
  SIDING_ASSIGN_OR_RETURN(r.task, TakeNumber(lines, "task", kMost));
  SIDING_ASSIGN_OR_RETURN(r.tasks, TakeNumber(lines, "tasks", kMostTasks));
  SIDING_ASSIGN_OR_RETURN(r.uid, TakeNumber(lines, "uid", kMost));
  SIDING_ASSIGN_OR_RETURN(r.gid, TakeNumber(lines, "gid", kMost));
  SIDING_ASSIGN_OR_RETURN(r.restarts, TakeNumber(lines, spank::kRestarts, kMostIncarnations - 1));
  // Compared, never looked into: one that is too long is cut.
  lines[spank::kCommand].copy(r.command, sizeof r.command - 1);
  SIDING_ASSIGN_OR_RETURN(r.options, TakeOptions(lines));
  // In a step, the job's variable is only what the script has left in the environment.
  registered.gpus.list = lines[r.step == spank::kBatchStep ? spank::kJobGpus : spank::kStepGpus];
  registered.gpus.devices = lines[spank::kGpuDevices];
  return registered;
}

absl::StatusOr<int> RankOf(const spank::Registration& r) {
  if (r.step == spank::kBatchStep) return 0;
  const int64_t first = (r.step + 1LL) * kRanksPerStep;
  if (r.task >= kRanksPerStep || first + kRanksPerStep - 1 > std::numeric_limits<int>::max()) {
    return absl::OutOfRangeError(
        absl::StrCat("step ", r.step, " task ", r.task, ": siding handles 32766 steps of 65536 tasks each"));
  }
  return static_cast<int>(first + r.task);
}

std::string CheckpointPrefix(int64_t job) { return absl::StrCat("slurm-", job, "."); }

std::optional<CheckpointId> LastWhole(const std::vector<ImageKey>& images, const spank::Registration& r) {
  const std::string prefix = CheckpointPrefix(r.job);
  spank::Registration first_task = r;
  first_task.task = 0;
  const auto first = RankOf(first_task);
  if (!first.ok()) return {};
  std::map<int64_t, std::set<int>, std::greater<>> ranks;  // by number, the last one first
  std::map<int64_t, CheckpointId> ids;
  for (const ImageKey& image : images) {
    const int64_t number = NumberOf(image.checkpoint, prefix);
    if (number <= 0 || image.rank < *first || image.rank - *first >= static_cast<int64_t>(r.tasks)) continue;
    ranks[number].insert(image.rank);
    ids[number] = image.checkpoint;
  }
  for (const auto& [number, there] : ranks) {
    if (there.size() == r.tasks) return ids[number];
  }
  return {};
}

std::optional<FoundCheckpoint> ChooseCheckpoint(const std::vector<ImageKey>& local,
                                                const std::vector<ImageKey>& shared,
                                                const spank::Registration& r) {
  const auto in_shared = LastWhole(shared, r);
  const auto in_local = r.tasks == 1 ? LastWhole(local, r) : std::nullopt;
  const std::string prefix = CheckpointPrefix(r.job);
  const int64_t shared_number = in_shared ? NumberOf(*in_shared, prefix) : 0;
  const int64_t local_number = in_local ? NumberOf(*in_local, prefix) : 0;
  if (local_number > shared_number) return FoundCheckpoint{*in_local, v1::LOCAL};
  if (in_shared) return FoundCheckpoint{*in_shared, v1::SHARED};
  return {};
}

absl::StatusOr<v1::ToAgent> StartOf(const spank::Registration& r,
                                    const std::optional<FoundCheckpoint>& checkpoint) {
  v1::ToAgent start;
  SIDING_ASSIGN_OR_RETURN(const int rank, RankOf(r));
  const int incarnation = static_cast<int>(r.restarts) + 1;
  start.set_op(incarnation * kOperationsPerIncarnation);
  start.mutable_task()->set_job(r.job);
  start.mutable_task()->set_incarnation(incarnation);
  start.mutable_task()->set_rank(rank);
  if (!checkpoint) {
    *start.mutable_launch()->mutable_spec() = SpecOf(r);
    return start;
  }
  v1::Restore& restore = *start.mutable_restore();
  *restore.mutable_spec() = SpecOf(r);
  restore.set_checkpoint(checkpoint->id.value());
  restore.set_tier(checkpoint->tier);
  return start;
}

std::string AcceptedText(const std::string& folder) {
  return absl::StrCat("siding-accepted ", spank::kVersion, "\nfolder ", folder, "\n");
}

std::string RefusedText(const absl::Status& why) {
  return absl::StrCat("siding-refused ", spank::kVersion, "\nreason ", OneLine(why, spank::kMaxPath), "\n");
}

std::string OrdersText(const absl::Status& status) {
  if (status.ok()) return absl::StrCat("siding-go ", spank::kVersion, "\n");
  return absl::StrCat("siding-failed ", spank::kVersion, "\nreason ", OneLine(status, spank::kMaxPath), "\n");
}

}  // namespace siding
