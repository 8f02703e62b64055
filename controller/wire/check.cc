#include "controller/wire/check.h"

#include <cmath>
#include <csignal>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/message_limits.h"
#include "common/status.h"
#include "common/units.h"

namespace siding {
namespace {

constexpr int64_t kMostCounted = 1'000'000;        // slots, GPUs, nodes, priorities
constexpr int64_t kMostMemory = int64_t{1} << 50;  // of one node
constexpr int64_t kMostDisk = int64_t{1} << 60;    // of a tier
constexpr int64_t kMostOps = int64_t{1} << 60;     // numbers of operations and jobs
constexpr int kMostGpusListed = 1024;              // of one node
constexpr int64_t kMostCopies = 10'000;            // of images, under way on one node
constexpr double kMostSpeed = 1e18;                // bytes per second
constexpr double kMostSpread = 100;                // of a logarithm

absl::Status Within(const char* field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected a number from ", least, " to ", most, ", got ", value));
}

absl::Status Within(const char* field, double value, double most) {
  if (value >= 0 && value <= most) return absl::OkStatus();  // so not NaN
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected a number from 0 to ", most, ", got ", value));
}

absl::Status CheckDuration(const char* field, int64_t value) {
  return Within(field, value, 0, kLongestDuration.count());
}
absl::Status CheckTime(const char* field, int64_t value) {
  return Within(field, value, 0, ToMicros(kLatestTime));
}

// As store/store.h has it. It is journalled.
absl::Status CheckDigest(const std::string& digest) {
  constexpr size_t kDigits = 64;
  const bool good =
      digest.size() == kDigits && digest.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (good || digest.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("image_digest: expected 64 hex digits");
}

absl::Status Check(const v1::Resources& resources) {
  SIDING_RETURN_IF_ERROR(Within("slots", resources.slots(), 0, kMostCounted));
  SIDING_RETURN_IF_ERROR(Within("memory", resources.memory(), 0, kMostMemory));
  return Within("gpus", resources.gpus(), 0, kMostCounted);
}

absl::Status Check(const v1::Rate& rate) {
  SIDING_RETURN_IF_ERROR(Within("bytes_per_second", rate.bytes_per_second(), kMostSpeed));
  SIDING_RETURN_IF_ERROR(CheckDuration("overhead", rate.overhead_us()));
  return Within("spread", rate.spread(), kMostSpread);
}

absl::Status Check(const v1::TierRates& rates) {
  SIDING_RETURN_IF_ERROR(Annotate(Check(rates.dump()), "dump"));
  return Annotate(Check(rates.restore()), "restore");
}

absl::Status Check(const v1::ImageCopy& copy) {
  SIDING_RETURN_IF_ERROR(Within("rank", copy.rank(), 0, std::numeric_limits<int32_t>::max()));
  SIDING_RETURN_IF_ERROR(Within("bytes_done", copy.bytes_done(), 0, 4 * kMostMemory));
  return Within("bytes_total", copy.bytes_total(), 0, 4 * kMostMemory);
}

absl::Status Check(const v1::TaskRef& task) {
  SIDING_RETURN_IF_ERROR(Within("job", task.job(), 1, kMostOps));
  SIDING_RETURN_IF_ERROR(Within("incarnation", task.incarnation(), 0, kMostIncarnations));
  SIDING_RETURN_IF_ERROR(Within("cluster", task.cluster(), 0, std::numeric_limits<int64_t>::max()));
  return Within("rank", task.rank(), 0, std::numeric_limits<int32_t>::max());
}

absl::Status Check(const v1::TaskReport& report) {
  SIDING_RETURN_IF_ERROR(Annotate(Check(report.task()), "task"));
  SIDING_RETURN_IF_ERROR(Within("memory", report.memory(), 0, kMostMemory));
  SIDING_RETURN_IF_ERROR(Within("gpu_memory", report.gpu_memory(), 0, kMostMemory));
  SIDING_RETURN_IF_ERROR(Within("out_of_memory", report.out_of_memory(), 0, kMostMemory));
  SIDING_RETURN_IF_ERROR(Within("killed_for_memory", report.killed_for_memory(), 0, kMostOps));
  SIDING_RETURN_IF_ERROR(Within("image_bytes", report.image_bytes(), 0, 4 * kMostMemory));
  SIDING_RETURN_IF_ERROR(Within("image_new_bytes", report.image_new_bytes(), 0, report.image_bytes()));
  SIDING_RETURN_IF_ERROR(CheckDigest(report.image_digest()));
  SIDING_RETURN_IF_ERROR(Within("exit_signal", report.exit_signal(), 0, NSIG));
  SIDING_RETURN_IF_ERROR(Within("failed_op", report.failed_op(), 0, kMostOps));
  SIDING_RETURN_IF_ERROR(Within("committed_op", report.committed_op(), 0, kMostOps));
  SIDING_RETURN_IF_ERROR(Within("op", report.op(), 0, kMostOps));
  SIDING_RETURN_IF_ERROR(CheckTime("started", report.started_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("gpu_lock", report.gpu_lock_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("waited", report.waited_us()));
  if (!report.has_spec()) return absl::OkStatus();
  SIDING_RETURN_IF_ERROR(Within("spec: nodes", report.spec().nodes(), 0, kMostTasks));
  return Annotate(CheckNumbers(report.spec()), "spec");
}

template <class Reports>
absl::Status CheckTasks(const Reports& reports) {
  for (const v1::TaskReport& report : reports) {
    SIDING_RETURN_IF_ERROR(
        Annotate(Check(report), absl::StrCat("task ", report.task().job(), ".", report.task().incarnation(),
                                             ".", report.task().rank())));
  }
  return absl::OkStatus();
}

absl::Status Check(const v1::KeptImages& kept) {
  for (const v1::KeptImage& image : kept.images())
    SIDING_RETURN_IF_ERROR(Within("kept: rank", image.rank(), 0, std::numeric_limits<int32_t>::max()));
  return absl::OkStatus();
}

absl::Status Check(const v1::Heartbeat& heartbeat) {
  SIDING_RETURN_IF_ERROR(Within("ram_available", heartbeat.ram_available(), 0, kMostMemory));
  SIDING_RETURN_IF_ERROR(Within("local_disk_free", heartbeat.local_disk_free(), 0, kMostDisk));
  SIDING_RETURN_IF_ERROR(Within("shared_disk_free", heartbeat.shared_disk_free(), 0, kMostDisk));
  SIDING_RETURN_IF_ERROR(Annotate(Check(heartbeat.local()), "local"));
  SIDING_RETURN_IF_ERROR(Annotate(Check(heartbeat.shared()), "shared"));
  SIDING_RETURN_IF_ERROR(Annotate(Check(heartbeat.gpu()), "gpu"));
  SIDING_RETURN_IF_ERROR(CheckTime("certificate_ends", heartbeat.certificate_ends_us()));
  SIDING_RETURN_IF_ERROR(Within("copies", int64_t{heartbeat.copies_size()}, 0, kMostCopies));
  SIDING_RETURN_IF_ERROR(
      Within("copied_bytes", heartbeat.copied_bytes(), 0, std::numeric_limits<int64_t>::max()));
  for (const v1::ImageCopy& copy : heartbeat.copies())
    SIDING_RETURN_IF_ERROR(Annotate(Check(copy), "copies"));
  SIDING_RETURN_IF_ERROR(Check(heartbeat.kept()));
  for (const v1::DamagedImage& image : heartbeat.damaged()) {
    SIDING_RETURN_IF_ERROR(Within("damaged: rank", image.rank(), 0, std::numeric_limits<int32_t>::max()));
  }
  return CheckTasks(heartbeat.tasks());
}

absl::Status Check(const v1::Progress& progress) {
  SIDING_RETURN_IF_ERROR(Within("bytes_done", progress.bytes_done(), 0, kMostDisk));
  SIDING_RETURN_IF_ERROR(Within("bytes_total", progress.bytes_total(), 0, kMostDisk));
  return Within("bytes_per_second", progress.bytes_per_second(), kMostSpeed);
}

absl::Status Check(const v1::OpResult& result) {
  int64_t all = 0;
  for (const v1::ImageFile& file : result.files()) {
    SIDING_RETURN_IF_ERROR(Within("size", file.size(), 0, kMostMemory));
    SIDING_RETURN_IF_ERROR(Within("sizes together", all += file.size(), 0, kMostDisk));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNumbers(const v1::JobSpec& spec) {
  SIDING_RETURN_IF_ERROR(Within("nodes", spec.nodes(), 0, kMostCounted));
  SIDING_RETURN_IF_ERROR(Check(spec.per_node()));
  SIDING_RETURN_IF_ERROR(Within("priority", spec.priority(), -kMostCounted, kMostCounted));
  SIDING_RETURN_IF_ERROR(CheckDuration("kill_grace", spec.kill_grace_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("checkpoint_interval", spec.checkpoint_interval_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("hold", spec.hold_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("walltime", spec.walltime_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("notice", spec.notice_us()));
  SIDING_RETURN_IF_ERROR(CheckDuration("app.grace", spec.app().grace_us()));
  SIDING_RETURN_IF_ERROR(CheckTime("start_by", spec.start_by_us()));
  return CheckTime("not_before", spec.not_before_us());
}

absl::Status CheckNumbers(const v1::UpdateRequest& request) {
  SIDING_RETURN_IF_ERROR(Within("priority", request.priority(), -kMostCounted, kMostCounted));
  return CheckDuration("walltime", request.walltime_us());
}

absl::Status CheckNumbers(const v1::Hello& hello) {
  SIDING_RETURN_IF_ERROR(Annotate(Check(hello.capacity()), "capacity"));
  SIDING_RETURN_IF_ERROR(Within("gpus listed", hello.gpus_size(), 0, kMostGpusListed));
  SIDING_RETURN_IF_ERROR(Check(hello.kept()));
  return CheckTasks(hello.tasks());
}

absl::Status CheckNumbers(const v1::FromAgent& message) {
  switch (message.what_case()) {
    case v1::FromAgent::kHello:
      return CheckNumbers(message.hello());
    case v1::FromAgent::kHeartbeat:
      return Annotate(Check(message.heartbeat()), "heartbeat");
    case v1::FromAgent::kReport:
      return Annotate(Check(message.report()), "report");
    case v1::FromAgent::kProgress:
      return Annotate(Check(message.progress()), "progress");
    case v1::FromAgent::kResult:
      return Annotate(Check(message.result()), "result");
    default:
      return absl::OkStatus();
  }
}

}  // namespace siding
