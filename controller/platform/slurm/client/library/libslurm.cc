// Slurm through its C library. Compiled once for each version of Slurm whose headers there are; see entry.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/library/entry.h"
#include "controller/platform/slurm/client/queue.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
// Shown by the library to Slurm's own tools, but not in its header.
const char* slurm_job_state_string(uint32_t state);
const char* slurm_job_reason_string(enum job_state_reason reason);
}

namespace siding::slurm {
namespace {

constexpr int64_t kMebi = 1 << 20;
constexpr int64_t kNoNice = NICE_OFFSET;
constexpr uint16_t kShow = SHOW_ALL | SHOW_DETAIL;

std::string Text(const char* text) { return text == nullptr ? "" : text; }
// Slurm's functions take texts that they could change, and do not.
char* Mutable(const std::string& text) { return const_cast<char*>(text.c_str()); }
std::optional<Time> Seconds(time_t time) {
  if (time == 0) return {};
  return Time(std::chrono::seconds(time));
}

absl::Status LastError() { return StatusOfMessage(slurm_strerror(errno)); }

absl::Status StatusOf(int result, const std::string& what) {
  return result == SLURM_SUCCESS ? absl::OkStatus() : Annotate(LastError(), what);
}

std::optional<Duration> Minutes(uint32_t minutes) {
  if (minutes == INFINITE || minutes == NO_VAL) return {};
  return std::chrono::minutes(minutes);
}

absl::StatusOr<QueueJob> ToValue(const slurm_job_info_t& in) {
  QueueJob job;
  job.id = JobNumber(in.job_id);
  job.state = slurm_job_state_string(in.job_state);
  job.phase = PhaseOf(job.state);
  job.array = JobNumber(in.array_job_id);
  job.array_tasks = Text(in.array_task_str);
  if (in.array_task_id != NO_VAL && in.array_job_id != 0) job.array_task = in.array_task_id;
  job.name = Text(in.name);
  job.uid = in.user_id;
  job.gid = in.group_id;
  job.reason = slurm_job_reason_string(static_cast<job_state_reason>(in.state_reason));
  job.partition = Text(in.partition);
  job.account = Text(in.account);
  job.qos = Text(in.qos);
  job.reservation = Text(in.resv_name);
  SIDING_ASSIGN_OR_RETURN(job.on, ExpandHostlist(Text(in.nodes)));
  SIDING_ASSIGN_OR_RETURN(job.only_on, ExpandHostlist(Text(in.req_nodes)));
  SIDING_ASSIGN_OR_RETURN(job.not_on, ExpandHostlist(Text(in.exc_nodes)));
  job.constraint = Text(in.features);
  job.whole_nodes = in.shared == JOB_SHARED_NONE || in.shared == JOB_SHARED_USER;
  job.nodes = static_cast<int>(in.num_nodes);
  job.cpus = static_cast<int>(in.num_cpus);
  job.gpus_per_node = GpusOf(Text(in.tres_per_node));
  for (uint32_t i = 0; i < in.gres_detail_cnt; ++i)
    job.gpus_per_node = std::max(job.gpus_per_node, GpusOf(Text(in.gres_detail_str[i])));
  job.priority = in.priority;
  if (in.nice != NO_VAL) job.nice = static_cast<int64_t>(in.nice) - kNoNice;
  job.requeueable = in.requeue != 0;
  job.restarts = in.restart_cnt;
  job.submitted = Seconds(in.submit_time);
  job.eligible = Seconds(in.eligible_time);
  job.started = Seconds(in.start_time);
  job.ends = Seconds(in.end_time);
  job.preempted = Seconds(in.preempt_time);
  job.limit = Minutes(in.time_limit);
  job.comment = Text(in.comment);
  job.admin_comment = Text(in.admin_comment);
  Requested requested{GpusOf(Text(in.tres_per_job)), {}};
  if (in.pn_min_memory != NO_VAL64) {
    const Bytes memory{static_cast<int64_t>(in.pn_min_memory & ~MEM_PER_CPU) * kMebi};
    ((in.pn_min_memory & MEM_PER_CPU) != 0 ? requested.memory_per_cpu : job.memory_per_node) = memory;
  }
  Complete(job, requested);
  return job;
}

// As sinfo says it, which reckons the mixed ones itself.
std::string StateOf(const node_info_t& in, int cpus_used) {
  switch (in.node_state & NODE_STATE_BASE) {
    case NODE_STATE_DOWN:
      return "down";
    case NODE_STATE_ERROR:
      return "error";
    case NODE_STATE_IDLE:
      return "idle";
    case NODE_STATE_FUTURE:
      return "future";
    case NODE_STATE_MIXED:
      return "mixed";
    case NODE_STATE_ALLOCATED:
      return cpus_used < in.cpus ? "mixed" : "allocated";
  }
  return "unknown";
}

absl::StatusOr<QueueNode> ToValue(const node_info_t& in) {
  QueueNode node;
  node.id = NodeId(Text(in.name));
  node.address = Text(in.node_addr);
  uint16_t cpus = 0;
  uint64_t memory = 0;
  slurm_get_select_nodeinfo(in.select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED, &cpus);
  slurm_get_select_nodeinfo(in.select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC, NODE_STATE_ALLOCATED, &memory);
  node.state = StateOf(in, cpus);
  node.up = IsUp(node.state) && (in.node_state & NODE_STATE_NO_RESPOND) == 0;
  node.drained = (in.node_state & (NODE_STATE_DRAIN | NODE_STATE_MAINT)) != 0;
  node.cpus = in.cpus;
  node.cpus_used = cpus;
  node.memory = Bytes{static_cast<int64_t>(in.real_memory) * kMebi};
  node.memory_used = Bytes{static_cast<int64_t>(memory) * kMebi};
  node.gpus = GpusOf(Text(in.gres));
  node.gpus_used = GpusOf(Text(in.gres_used));
  node.features = absl::StrSplit(Text(in.features_act), ',', absl::SkipEmpty());
  node.reason = Text(in.reason);
  return node;
}

absl::StatusOr<Partition> ToValue(const partition_info_t& in) {
  Partition partition;
  partition.name = Text(in.name);
  partition.up = (in.state_up & PARTITION_SCHED) != 0;
  partition.is_default = (in.flags & PART_FLAG_DEFAULT) != 0;
  SIDING_ASSIGN_OR_RETURN(partition.nodes, ExpandHostlist(Text(in.nodes)));
  partition.max_time = Minutes(in.max_time);
  partition.priority_tier = in.priority_tier;
  partition.grace = std::chrono::seconds(in.grace_time);
  return partition;
}

absl::StatusOr<Reservation> ToValue(const reserve_info_t& in) {
  Reservation reservation;
  reservation.name = Text(in.name);
  SIDING_ASSIGN_OR_RETURN(reservation.nodes, ExpandHostlist(Text(in.node_list)));
  reservation.users = absl::StrSplit(Text(in.users), ',', absl::SkipEmpty());
  reservation.start = Time(std::chrono::seconds(in.start_time));
  reservation.end = Time(std::chrono::seconds(in.end_time));
  return reservation;
}

// One kind of list, and the state of things in which Slurm gave it last.
template <class T>
struct Cached {
  time_t last_update = 0;
  Client::List<T> list = std::make_shared<const std::vector<T>>();
};

class LibraryClient final : public Client {
 public:
  std::string Description() const override { return "libslurm " SIDING_SLURM_VERSION; }

  absl::StatusOr<List<QueueJob>> Jobs() override {
    const auto load = [](time_t since, job_info_msg_t** message) {
      return slurm_load_jobs(since, message, kShow);
    };
    return Load(jobs_, load, &job_info_msg_t::job_array, slurm_free_job_info_msg, "jobs");
  }
  absl::StatusOr<List<QueueNode>> Nodes() override {
    const auto load = [](time_t since, node_info_msg_t** message) {
      return slurm_load_node(since, message, kShow);
    };
    return Load(nodes_, load, &node_info_msg_t::node_array, slurm_free_node_info_msg, "nodes");
  }
  absl::StatusOr<List<Partition>> Partitions() override {
    const auto load = [](time_t since, partition_info_msg_t** message) {
      return slurm_load_partitions(since, message, kShow);
    };
    return Load(partitions_, load, &partition_info_msg_t::partition_array, slurm_free_partition_info_msg,
                "partitions");
  }
  absl::StatusOr<List<Reservation>> Reservations() override {
    return Load(reservations_, slurm_load_reservations, &reserve_info_msg_t::reservation_array,
                slurm_free_reservation_info_msg, "reservations");
  }

  absl::StatusOr<Settings> LoadSettings() override {
    slurm_conf_t* raw = nullptr;
    if (slurm_load_ctl_conf(0, &raw) != SLURM_SUCCESS) return Annotate(LastError(), "settings");
    const std::unique_ptr<slurm_conf_t, void (*)(slurm_conf_t*)> conf(raw, slurm_free_ctl_conf);
    return Settings{ParseExits(Text(conf->requeue_exit)),
                    ParseExits(Text(conf->requeue_exit_hold)),
                    conf->job_requeue != 0,
                    conf->job_file_append != 0,
                    Text(conf->task_prolog),
                    PriorityByAge(Text(conf->priority_type), conf->priority_weight_age)};
  }

  absl::Status Do(JobNumber job, Verb verb) override {
    const int result = verb == Verb::kSuspend ? slurm_suspend(job.value()) : slurm_resume(job.value());
    return StatusOf(result, absl::StrCat("job ", job.value()));
  }

  absl::Status Update(JobNumber job, const JobChange& change) override {
    const std::string nodes = JoinHostlist(change.only_on.value_or(std::vector<NodeId>()));
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    message.job_id = job.value();
    if (change.only_on) message.req_nodes = Mutable(nodes);
    if (change.reservation) message.reservation = Mutable(*change.reservation);
    if (change.admin_comment) message.admin_comment = Mutable(*change.admin_comment);
    if (change.comment) message.comment = Mutable(*change.comment);
    if (change.nice) message.nice = static_cast<uint32_t>(*change.nice + kNoNice);
    return StatusOf(slurm_update_job(&message), absl::StrCat("job ", job.value()));
  }

  absl::Status CreateReservation(const Reservation& reservation) override {
    const std::string nodes = JoinHostlist(reservation.nodes);
    const std::string users = absl::StrJoin(reservation.users, ",");
    resv_desc_msg_t message;
    slurm_init_resv_desc_msg(&message);
    message.name = Mutable(reservation.name);
    message.node_list = Mutable(nodes);
    message.users = Mutable(users);
    message.start_time = ToMicros(reservation.start) / 1'000'000;
    message.end_time = ToMicros(reservation.end) / 1'000'000;
    message.flags = RESERVE_FLAG_IGN_JOBS | RESERVE_FLAG_FLEX | RESERVE_FLAG_NO_HOLD_JOBS;
    char* name = slurm_create_reservation(&message);
    if (name == nullptr) return Annotate(LastError(), "reservation " + reservation.name);
    free(name);
    return absl::OkStatus();
  }

  absl::Status DeleteReservation(const std::string& name) override {
    reservation_name_msg_t message = {Mutable(name)};
    return StatusOf(slurm_delete_reservation(&message), "reservation " + name);
  }

 private:
  // `ask` asks for what has changed since a time; `array` is where its message holds the records.
  template <class T, class Ask, class Message, class Record>
  static absl::StatusOr<List<T>> Load(Cached<T>& cached, const Ask& ask, Record* Message::*array,
                                      void (*free_message)(Message*), const std::string& what) {
    Message* raw = nullptr;
    if (ask(cached.last_update, &raw) != SLURM_SUCCESS) {
      if (errno == SLURM_NO_CHANGE_IN_DATA) return cached.list;
      return Annotate(LastError(), what);
    }
    const std::unique_ptr<Message, void (*)(Message*)> message(raw, free_message);
    std::vector<T> values;
    values.reserve(message->record_count);
    for (uint32_t i = 0; i < message->record_count; ++i) {
      SIDING_ASSIGN_OR_RETURN(T value, ToValue((message.get()->*array)[i]));
      values.push_back(std::move(value));
    }
    std::sort(values.begin(), values.end(), [](const T& a, const T& b) { return Before(a, b); });
    // Slurm's time of change also moves when nothing did that we look at.
    if (*cached.list != values) cached.list = std::make_shared<const std::vector<T>>(std::move(values));
    cached.last_update = message->last_update;
    return cached.list;
  }

  Cached<QueueJob> jobs_;
  Cached<QueueNode> nodes_;
  Cached<Partition> partitions_;
  Cached<Reservation> reservations_;
};

}  // namespace
}  // namespace siding::slurm

extern "C" __attribute__((visibility("default"))) siding::slurm::Client* siding_slurm_open(
    const char* siding_version) {
  if (std::strcmp(siding_version, SIDING_VERSION) != 0) return nullptr;
  slurm_init(nullptr);
  return new siding::slurm::LibraryClient();
}
