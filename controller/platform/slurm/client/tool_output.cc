#include "controller/platform/slurm/client/tool_output.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/utf8.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/queue.h"

namespace siding::slurm {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMebi = 1 << 20;
// Slurm counts, and tells MiB and seconds; what is more than this stands for "not said" or "without limit".
constexpr int64_t kLargest = 1'000'000'000'000;

// ---- JSON: a field that is absent, null, of another type or out of range is as good as not set. ----

bool Flag(const Json& record, const char* key) {
  const auto field = record.find(key);
  return field != record.end() && field->is_boolean() && field->get<bool>();
}

// 5, or {"set": true, "infinite": false, "number": 5} as later versions write it.
std::optional<int64_t> Number(const Json& record, const char* key) {
  const auto field = record.find(key);
  if (field == record.end()) return {};
  if (field->is_object()) {
    if (!Flag(*field, "set") || Flag(*field, "infinite")) return {};
    return field->contains("number") && (*field)["number"].is_number() ? Number(*field, "number") : 0;
  }
  if (!field->is_number()) return {};
  const double value = field->get<double>();
  if (value < 0 || value > static_cast<double>(kLargest)) return {};
  return static_cast<int64_t>(value);  // exact: it has fewer than 53 bits
}

int Count(const Json& record, const char* key) {
  constexpr int64_t kMostCounted = 1'000'000'000;  // two of them can be added
  return static_cast<int>(std::min(Number(record, key).value_or(0), kMostCounted));
}

// "a", or ["a", ...] as later versions write it: the first, which for states is the state itself.
std::string Text(const Json& record, const char* key) {
  const auto field = record.find(key);
  if (field == record.end()) return "";
  if (field->is_string()) return field->get<std::string>();
  if (field->is_array() && !field->empty() && field->front().is_string()) return field->front();
  return "";
}

std::vector<std::string> Texts(const Json& record, const char* key) {
  std::vector<std::string> texts;
  const auto field = record.find(key);
  if (field == record.end() || !field->is_array()) return texts;
  for (const Json& one : *field) {
    if (one.is_string()) texts.push_back(one);
  }
  return texts;
}

std::optional<Time> Seconds(const Json& record, const char* key) {
  const int64_t seconds = Number(record, key).value_or(0);
  if (seconds == 0) return {};
  return std::min(Time(std::chrono::seconds(seconds)), kLatestTime);
}

std::optional<Duration> Minutes(const Json& record, const char* key) {
  const auto minutes = Number(record, key);
  if (!minutes || *minutes > std::chrono::floor<std::chrono::minutes>(kLongestDuration).count()) return {};
  return std::chrono::minutes(*minutes);
}

// Of 32 bits: this version prints -1 as 4294967295.
int64_t Nice(const Json& record) {
  const auto field = record.find("nice");
  if (field == record.end() || !field->is_number_integer()) return Number(record, "nice").value_or(0);
  return static_cast<int32_t>(field->get<int64_t>());
}

Bytes Mebibytes(const Json& record, const char* key) {
  return Bytes{Number(record, key).value_or(0) * kMebi};
}

absl::StatusOr<std::vector<NodeId>> Hosts(const Json& record, const char* key) {
  auto hosts = ExpandHostlist(Text(record, key));
  return hosts.ok() ? hosts : absl::InternalError(absl::StrCat(key, ": ", hosts.status().message()));
}

// The list under `key` of what the tool printed, each of its records read by `read`.
template <class T>
absl::StatusOr<std::vector<T>> ReadList(const std::string& text, const std::string& tool, const char* key,
                                        absl::StatusOr<T> (*read)(const Json&)) {
  // Any user may give a job a name that is no text, and the queue is to be seen all the same.
  const Json all = Json::parse(ToUtf8(text), nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) return absl::InternalError(tool + ": expected a JSON object");
  // The tools print an empty list and exit with 0 when slurmctld does not answer, and do not say that it was
  // that.
  if (const auto errors = all.find("errors"); errors != all.end() && errors->is_array() && !errors->empty()) {
    const std::string error = errors->front().is_object() ? Text(errors->front(), "error") : "";
    return absl::UnavailableError(absl::StrCat(tool, ": ", error.empty() ? "failed" : error));
  }
  const auto list = all.find(key);
  if (list == all.end() || !list->is_array()) {
    return absl::InternalError(absl::StrCat(tool, ": expected a list '", key, "'"));
  }
  std::vector<T> values;
  for (const Json& record : *list) {
    absl::StatusOr<T> value = record.is_object() ? read(record) : absl::InternalError("expected an object");
    if (!value.ok())
      return Annotate(value.status(), absl::StrCat(tool, ": number ", values.size() + 1, " of '", key, "'"));
    values.push_back(*std::move(value));
  }
  return values;
}

int MostGpus(const Json& record, const char* key) {
  int most = 0;
  for (const std::string& node : Texts(record, key)) most = std::max(most, GpusOf(node));
  return most;
}

absl::StatusOr<QueueJob> ReadJob(const Json& record) {
  const std::optional<int64_t> id = Number(record, "job_id");
  if (!id || *id <= 0 || *id > std::numeric_limits<uint32_t>::max())
    return absl::InternalError("job_id: expected a number from 1");
  QueueJob job;
  job.id = JobNumber(static_cast<uint32_t>(*id));
  job.state = Text(record, "job_state");
  if (job.state.empty()) return absl::InternalError("job_state: expected a word");
  job.phase = PhaseOf(job.state);
  job.array = JobNumber(static_cast<uint32_t>(Number(record, "array_job_id").value_or(0)));
  job.array_tasks = Text(record, "array_task_string");
  if (const auto task = Number(record, "array_task_id"); task && job.array != JobNumber())
    job.array_task = static_cast<uint32_t>(*task);
  job.name = Text(record, "name");
  job.uid = static_cast<uint32_t>(Number(record, "user_id").value_or(0));
  job.gid = static_cast<uint32_t>(Number(record, "group_id").value_or(0));
  job.reason = Text(record, "state_reason");
  job.partition = Text(record, "partition");
  job.account = Text(record, "account");
  job.qos = Text(record, "qos");
  job.reservation = Text(record, "resv_name");
  job.nodes = Count(record, "node_count");
  job.cpus = Count(record, "cpus");
  job.memory_per_node = Mebibytes(record, "memory_per_node");
  job.gpus_per_node = std::max(MostGpus(record, "gres_detail"), GpusOf(Text(record, "tres_per_node")));
  SIDING_ASSIGN_OR_RETURN(job.on, Hosts(record, "nodes"));
  SIDING_ASSIGN_OR_RETURN(job.only_on, Hosts(record, "required_nodes"));
  SIDING_ASSIGN_OR_RETURN(job.not_on, Hosts(record, "excluded_nodes"));
  job.constraint = Text(record, "features");
  const std::string shared = Text(record, "shared");
  job.whole_nodes = shared == "none" || shared == "user";
  job.priority = static_cast<uint32_t>(Number(record, "priority").value_or(0));
  job.nice = Nice(record);
  job.requeueable = Flag(record, "requeue");
  job.restarts = Count(record, "restart_cnt");
  job.submitted = Seconds(record, "submit_time");
  job.eligible = Seconds(record, "eligible_time");
  job.started = Seconds(record, "start_time");
  job.ends = Seconds(record, "end_time");
  job.preempted = Seconds(record, "preempt_time");
  job.limit = Minutes(record, "time_limit");
  job.comment = Text(record, "comment");
  job.admin_comment = Text(record, "admin_comment");
  Complete(job, {GpusOf(Text(record, "tres_per_job")), Mebibytes(record, "memory_per_cpu")});
  return job;
}

absl::StatusOr<QueueNode> ReadNode(const Json& record) {
  QueueNode node;
  node.id = NodeId(Text(record, "name"));
  if (node.id.value().empty()) return absl::InternalError("name: expected a node's name");
  node.address = Text(record, "address");
  node.state = absl::AsciiStrToLower(Text(record, "state"));
  // Later versions have the flags behind the state.
  std::vector<std::string> flags = Texts(record, "state_flags");
  const std::vector<std::string> more = Texts(record, "state");
  flags.insert(flags.end(), more.begin(), more.end());
  const auto has = [&flags](const char* flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  node.up = IsUp(node.state) && !has("NOT_RESPONDING");
  node.drained = has("DRAIN") || has("MAINTENANCE");
  node.cpus = Count(record, "cpus");
  node.cpus_used = Count(record, "alloc_cpus");
  node.memory = Mebibytes(record, "real_memory");
  node.memory_used = Mebibytes(record, "alloc_memory");
  node.gpus = GpusOf(Text(record, "gres"));
  node.gpus_used = GpusOf(Text(record, "gres_used"));
  node.features = absl::StrSplit(Text(record, "active_features"), ',', absl::SkipEmpty());
  node.reason = Text(record, "reason");
  return node;
}

// ---- scontrol's lines of "Key=value" words. ----

using Line = std::map<std::string, std::string>;

std::vector<Line> Lines(const std::string& text, const std::string& first_key) {
  std::vector<Line> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (!absl::StartsWith(line, first_key + "=")) continue;  // "No reservations in the system"
    Line& words = lines.emplace_back();
    for (const std::string& word : std::vector<std::string>(absl::StrSplit(line, ' ', absl::SkipEmpty()))) {
      words.insert(std::pair<std::string, std::string>(absl::StrSplit(word, absl::MaxSplits('=', 1))));
    }
  }
  return lines;
}

absl::Status Odd(const std::string& what, const Line& line, const std::string& key,
                 const std::string& expected) {
  const auto found = line.find(key);
  return absl::InternalError(absl::StrCat("scontrol: ", what, ": ", key, ": expected ", expected, ", found '",
                                          found == line.end() ? "" : found->second, "'"));
}

std::string Word(const Line& line, const std::string& key) {
  const auto found = line.find(key);
  return found == line.end() || found->second == "(null)" ? "" : found->second;
}

absl::StatusOr<std::vector<NodeId>> Hosts(const std::string& what, const Line& line, const std::string& key) {
  auto hosts = ExpandHostlist(Word(line, key));
  return hosts.ok() ? hosts : Odd(what, line, key, "a list of nodes");
}

absl::StatusOr<Time> Seconds(const std::string& what, const Line& line, const std::string& key) {
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(Word(line, key), &seconds) || seconds < 0)
    return Odd(what, line, key, "seconds since 1970");
  return std::min(Time(std::chrono::seconds(std::min(seconds, kLargest))), kLatestTime);
}

}  // namespace

absl::StatusOr<std::vector<QueueJob>> ParseQueue(const std::string& json) {
  return ReadList<QueueJob>(json, "squeue --json", "jobs", ReadJob);
}

absl::StatusOr<std::vector<QueueNode>> ParseNodes(const std::string& json) {
  return ReadList<QueueNode>(json, "sinfo --json", "nodes", ReadNode);
}

absl::StatusOr<std::vector<Partition>> ParsePartitions(const std::string& text) {
  std::vector<Partition> partitions;
  for (const Line& line : Lines(text, "PartitionName")) {
    Partition& partition = partitions.emplace_back();
    partition.name = Word(line, "PartitionName");
    const std::string what = "partition " + partition.name;
    partition.up = Word(line, "State") == "UP";
    partition.is_default = Word(line, "Default") == "YES";
    SIDING_ASSIGN_OR_RETURN(partition.nodes, Hosts(what, line, "Nodes"));
    const auto limit = ParseLimit(Word(line, "MaxTime"));
    if (!limit.ok()) return Odd(what, line, "MaxTime", "UNLIMITED or DAYS-HH:MM:SS");
    partition.max_time = *limit;
    int grace = 0;
    if (!absl::SimpleAtoi(Word(line, "PriorityTier"), &partition.priority_tier))
      return Odd(what, line, "PriorityTier", "a number");
    if (!absl::SimpleAtoi(Word(line, "GraceTime"), &grace)) return Odd(what, line, "GraceTime", "seconds");
    partition.grace = std::chrono::seconds(grace);
  }
  return partitions;
}

absl::StatusOr<std::vector<Reservation>> ParseReservations(const std::string& text) {
  std::vector<Reservation> reservations;
  for (const Line& line : Lines(text, "ReservationName")) {
    Reservation& reservation = reservations.emplace_back();
    reservation.name = Word(line, "ReservationName");
    const std::string what = "reservation " + reservation.name;
    SIDING_ASSIGN_OR_RETURN(reservation.nodes, Hosts(what, line, "Nodes"));
    reservation.users = absl::StrSplit(Word(line, "Users"), ',', absl::SkipEmpty());
    SIDING_ASSIGN_OR_RETURN(reservation.start, Seconds(what, line, "StartTime"));
    SIDING_ASSIGN_OR_RETURN(reservation.end, Seconds(what, line, "EndTime"));
  }
  return reservations;
}

}  // namespace siding::slurm
