// SpecOf: Slurm's options for tasks, CPUs, memory and GPUs as what a job takes from each of its nodes.
#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/queue.h"
#include "controller/platform/slurm/submit/question.h"
#include "controller/platform/slurm/watch/constraint.h"
#include "controller/platform/slurm/watch/translate.h"

namespace siding::slurm {
namespace {

constexpr int64_t kMost = 1'000'000;  // of whatever is counted
constexpr double kMostBytes = 9e18;

// The largest of so many parts.
int64_t Spread(int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; }

// The options of one question. What was not given is nothing, and no error.
class Options {
 public:
  explicit Options(const std::map<std::string, std::string>& given) : given_(given) {}

  const std::string* Find(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? nullptr : &found->second;
  }

  absl::Status Bad(const std::string& name, const std::string& expected) const {
    return absl::InvalidArgumentError(absl::StrCat("--", name, "=", *Find(name), ": expected ", expected));
  }

  absl::StatusOr<int64_t> Count(const std::string& name, int64_t otherwise) const {
    const std::string* const text = Find(name);
    if (text == nullptr) return otherwise;
    int64_t count = 0;
    if (!absl::SimpleAtoi(*text, &count) || count < 1 || count > kMost)
      return Bad(name, absl::StrCat("a number from 1 to ", kMost));
    return count;
  }

  // "1500" (MiB) or "2G". Slurm writes "0?" for the 0 that asks for all that a node has.
  absl::StatusOr<Bytes> Memory(const std::string& name) const {
    const std::string* const text = Find(name);
    if (text == nullptr || *text == "0?") return Bytes{0};
    static const std::string kUnits = "KMGT";
    const bool plain = !text->empty() && absl::ascii_isdigit(text->back());
    const size_t unit = plain ? kUnits.find('M') : kUnits.find(text->empty() ? '?' : text->back());
    int64_t number = 0;
    if (unit == std::string::npos ||
        !absl::SimpleAtoi(text->substr(0, text->size() - (plain ? 0 : 1)), &number) || number < 0) {
      return Bad(name, "a number, with K, M, G or T behind it if it is not of MiB");
    }
    const int64_t factor = int64_t{1024} << (10 * unit);
    if (static_cast<double>(number) * static_cast<double>(factor) > kMostBytes)
      return Bad(name, "less memory");
    return Bytes{number * factor};
  }

  // "2", "h200:2", "h200:2,a100:1" of --gpus and the like.
  int64_t Gpus(const std::string& name) const {
    const std::string* const text = Find(name);
    if (text == nullptr) return 0;
    const std::vector<std::string> kinds = absl::StrSplit(*text, ',');
    return GpusOf("gpu:" + absl::StrJoin(kinds, ",gpu:"));
  }

 private:
  const std::map<std::string, std::string>& given_;
};

absl::StatusOr<int64_t> NodesOf(const Options& options) {
  if (const std::string* const text = options.Find("nodes")) {
    const std::vector<std::string> range = absl::StrSplit(*text, '-');  // "2" or "2-4"
    int64_t least = 0, most = 0;
    if (range.size() > 2 || !absl::SimpleAtoi(range.front(), &least) ||
        !absl::SimpleAtoi(range.back(), &most) || least < 1 || least > kMost) {
      return options.Bad("nodes", "a number or MIN-MAX");
    }
    return least;
  }
  if (const std::string* const text = options.Find("nodelist")) {
    const auto names = ExpandHostlist(*text);
    if (!names.ok()) return Annotate(names.status(), "--nodelist");
    return std::max<int64_t>(static_cast<int64_t>(names->size()), 1);
  }
  if (options.Find("ntasks-per-node") == nullptr) return 1;
  SIDING_ASSIGN_OR_RETURN(const int64_t per_node, options.Count("ntasks-per-node", 1));
  SIDING_ASSIGN_OR_RETURN(const int64_t tasks, options.Count("ntasks", per_node));
  return Spread(tasks, per_node);
}

// On the node that has most of them.
absl::StatusOr<int64_t> TasksPerNode(const Options& options, int64_t nodes) {
  SIDING_ASSIGN_OR_RETURN(const int64_t per_node, options.Count("ntasks-per-node", 1));
  SIDING_ASSIGN_OR_RETURN(const int64_t tasks, options.Count("ntasks", per_node * nodes));
  return Spread(tasks, nodes);
}

absl::StatusOr<int64_t> GpusPerNode(const Options& options, int64_t nodes, int64_t tasks) {
  const std::string* const gres = options.Find("gres");
  const int64_t gpus =
      std::max({static_cast<int64_t>(gres == nullptr ? 0 : GpusOf(*gres)), options.Gpus("gpus-per-node"),
                Spread(options.Gpus("gpus"), nodes), options.Gpus("gpus-per-task") * tasks});
  if (gpus < 0 || gpus > kMost) return absl::InvalidArgumentError(absl::StrCat(gpus, " GPUs per node"));
  return gpus;
}

absl::StatusOr<int64_t> SlotsPerNode(const Options& options, int64_t tasks, int64_t gpus) {
  SIDING_ASSIGN_OR_RETURN(const int64_t per_task, options.Count("cpus-per-task", 1));
  SIDING_ASSIGN_OR_RETURN(const int64_t at_least, options.Count("mincpus", 1));
  SIDING_ASSIGN_OR_RETURN(const int64_t per_gpu, options.Count("cpus-per-gpu", 1));
  const int64_t slots = std::max({tasks * per_task, at_least, gpus * per_gpu});
  if (slots > kMost) return absl::InvalidArgumentError(absl::StrCat(slots, " CPUs per node"));
  return slots;
}

absl::StatusOr<Bytes> MemoryPerNode(const Options& options, int64_t slots, int64_t gpus) {
  SIDING_ASSIGN_OR_RETURN(const Bytes whole, options.Memory("mem"));
  SIDING_ASSIGN_OR_RETURN(const Bytes per_cpu, options.Memory("mem-per-cpu"));
  SIDING_ASSIGN_OR_RETURN(const Bytes per_gpu, options.Memory("mem-per-gpu"));
  if (static_cast<double>(per_cpu.value) * static_cast<double>(slots) > kMostBytes)
    return options.Bad("mem-per-cpu", "less memory");
  if (static_cast<double>(per_gpu.value) * static_cast<double>(gpus) > kMostBytes)
    return options.Bad("mem-per-gpu", "less memory");
  return std::max({whole, Bytes{per_cpu.value * slots}, Bytes{per_gpu.value * gpus}});
}

absl::StatusOr<Resources> PerNode(const Options& options, int64_t nodes) {
  SIDING_ASSIGN_OR_RETURN(const int64_t tasks, TasksPerNode(options, nodes));
  SIDING_ASSIGN_OR_RETURN(const int64_t gpus, GpusPerNode(options, nodes, tasks));
  SIDING_ASSIGN_OR_RETURN(const int64_t slots, SlotsPerNode(options, tasks, gpus));
  SIDING_ASSIGN_OR_RETURN(const Bytes memory, MemoryPerNode(options, slots, gpus));
  return Resources{static_cast<int>(slots), memory, static_cast<int>(gpus)};
}

}  // namespace

absl::StatusOr<JobSpec> SpecOf(const Question& question) {
  const Options options(question.options);
  if (options.Find("array") != nullptr) {
    return absl::UnimplementedError(
        "--array: a deadline is one job's; submit the elements of the array one by one");
  }
  JobSpec spec;
  spec.kind = JobKind::kOnDemand;
  spec.cluster_manager = "slurm";
  spec.uid = question.uid;
  spec.start_by = question.start_by;
  if (question.not_before) spec.not_before = *question.not_before;
  SIDING_ASSIGN_OR_RETURN(const int64_t nodes, NodesOf(options));
  spec.nodes = static_cast<int>(nodes);
  SIDING_ASSIGN_OR_RETURN(spec.per_node, PerNode(options, nodes));
  if (const std::string* const text = options.Find("time")) {
    const auto limit = ParseLimit(*text);
    if (!limit.ok()) return Annotate(limit.status(), "--time");
    spec.hold = limit->value_or(Duration{0});
  }
  if (const std::string* const name = options.Find("job-name")) spec.name = *name;
  if (const std::string* const constraint = options.Find("constraint"))
    SIDING_RETURN_IF_ERROR(Constraint::Parse(*constraint).status());
  if (options.Find("exclusive") != nullptr) spec.labels[kExclusiveLabel] = "yes";
  const std::pair<const char*, const char*> labels[] = {{"nodelist", kNodesLabel},
                                                        {"exclude", kExcludeLabel},
                                                        {"constraint", kConstraintLabel},
                                                        {"partition", "partition"},
                                                        {"qos", "qos"},
                                                        {"account", "account"}};
  for (const auto& [option, label] : labels) {
    if (const std::string* const value = options.Find(option)) spec.labels[label] = *value;
  }
  return spec;
}

}  // namespace siding::slurm
