// Slurm through its C library. Compiled once for each version of Slurm whose headers there are; see entry.h.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "controller/platform/slurm/job_rules.h"
#include "controller/platform/slurm/library/entry.h"
#include "controller/platform/slurm/words.h"

extern "C" {
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
// Shown by the library to Slurm's own tools, but not in its header.
const char* slurm_job_state_string(uint32_t state);
const char* slurm_job_reason_string(enum job_state_reason reason);
}

namespace siding {
namespace {

constexpr int64_t kMebi = 1 << 20;
constexpr uint16_t kShow = SHOW_ALL | SHOW_DETAIL;

std::string Text(const char* text) { return text == nullptr ? "" : text; }
// Slurm's functions take texts that they could change, and do not.
char* Mutable(const std::string& text) { return const_cast<char*>(text.c_str()); }
Time Seconds(time_t time) { return Time(std::chrono::seconds(time)); }

absl::Status LastError() { return StatusOfMessage(slurm_strerror(errno)); }

absl::Status StatusOf(int result, const std::string& what) {
  return result == SLURM_SUCCESS ? absl::OkStatus() : Annotate(LastError(), what);
}

std::optional<Duration> Minutes(uint32_t minutes) {
  if (minutes == INFINITE || minutes == NO_VAL) return {};
  return std::chrono::minutes(minutes);
}

absl::StatusOr<SlurmJob> ToValue(const slurm_job_info_t& in) {
  SlurmJob job;
  job.id = SlurmJobId(in.job_id);
  job.state_word = slurm_job_state_string(in.job_state);
  job.state = JobStateOf(job.state_word);
  job.array = SlurmJobId(in.array_job_id);
  job.array_tasks = Text(in.array_task_str);
  job.name = Text(in.name);
  job.uid = in.user_id;
  job.gid = in.group_id;
  job.reason = slurm_job_reason_string(static_cast<job_state_reason>(in.state_reason));
  job.partition = Text(in.partition);
  job.account = Text(in.account);
  job.qos = Text(in.qos);
  job.reservation = Text(in.resv_name);
  SIDING_ASSIGN_OR_RETURN(job.nodes, ExpandHosts(Text(in.nodes)));
  SIDING_ASSIGN_OR_RETURN(job.wanted_nodes, ExpandHosts(Text(in.req_nodes)));
  job.node_count = static_cast<int>(in.num_nodes);
  job.cpus = static_cast<int>(in.num_cpus);
  job.gpus_per_node = CountGpus(Text(in.tres_per_node));
  for (uint32_t i = 0; i < in.gres_detail_cnt; ++i)
    job.gpus_per_node = std::max(job.gpus_per_node, CountGpus(Text(in.gres_detail_str[i])));
  job.priority = in.priority;
  job.requeueable = in.requeue != 0;
  job.restarts = in.restart_cnt;
  job.submitted = Seconds(in.submit_time);
  job.started = Seconds(in.start_time);
  job.preempted = Seconds(in.preempt_time);
  job.time_limit = Minutes(in.time_limit);
  job.comment = Text(in.comment);
  job.admin_comment = Text(in.admin_comment);
  SlurmAsked asked{CountGpus(Text(in.tres_per_job)), {}};
  if (in.pn_min_memory != NO_VAL64) {
    const Bytes memory{static_cast<int64_t>(in.pn_min_memory & ~MEM_PER_CPU) * kMebi};
    ((in.pn_min_memory & MEM_PER_CPU) != 0 ? asked.memory_per_cpu : job.memory_per_node) = memory;
  }
  Complete(job, asked);
  return job;
}

SlurmNodeState NodeStateOf(uint32_t state) {
  switch (state & NODE_STATE_BASE) {
    case NODE_STATE_DOWN:
    case NODE_STATE_ERROR:
      return SlurmNodeState::kDown;
    case NODE_STATE_IDLE:
      return SlurmNodeState::kIdle;
    case NODE_STATE_MIXED:
      return SlurmNodeState::kMixed;
    case NODE_STATE_ALLOCATED:
      return SlurmNodeState::kAllocated;
  }
  return SlurmNodeState::kUnknown;
}

absl::StatusOr<SlurmNode> ToValue(const node_info_t& in) {
  SlurmNode node;
  node.id = NodeId(Text(in.name));
  node.address = Text(in.node_addr);
  node.state = NodeStateOf(in.node_state);
  node.drained = (in.node_state & NODE_STATE_DRAIN) != 0;
  node.responding = (in.node_state & NODE_STATE_NO_RESPOND) == 0;
  node.completing = (in.node_state & NODE_STATE_COMPLETING) != 0;
  node.maintenance = (in.node_state & NODE_STATE_MAINT) != 0;
  node.reason = Text(in.reason);
  node.cpus = in.cpus;
  node.memory = Bytes{static_cast<int64_t>(in.real_memory) * kMebi};
  uint16_t cpus = 0;
  uint64_t memory = 0;
  slurm_get_select_nodeinfo(in.select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED, &cpus);
  slurm_get_select_nodeinfo(in.select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC, NODE_STATE_ALLOCATED, &memory);
  node.allocated_cpus = cpus;
  // As sinfo reckons it.
  if (node.state == SlurmNodeState::kAllocated && cpus < in.cpus) node.state = SlurmNodeState::kMixed;
  node.allocated_memory = Bytes{static_cast<int64_t>(memory) * kMebi};
  node.gpus = CountGpus(Text(in.gres));
  node.allocated_gpus = CountGpus(Text(in.gres_used));
  return node;
}

absl::StatusOr<SlurmPartition> ToValue(const partition_info_t& in) {
  SlurmPartition partition;
  partition.name = Text(in.name);
  partition.up = (in.state_up & PARTITION_SCHED) != 0;
  partition.is_default = (in.flags & PART_FLAG_DEFAULT) != 0;
  SIDING_ASSIGN_OR_RETURN(partition.nodes, ExpandHosts(Text(in.nodes)));
  partition.max_time = Minutes(in.max_time);
  partition.priority_tier = in.priority_tier;
  partition.grace = std::chrono::seconds(in.grace_time);
  return partition;
}

absl::StatusOr<SlurmReservation> ToValue(const reserve_info_t& in) {
  SlurmReservation reservation;
  reservation.name = Text(in.name);
  SIDING_ASSIGN_OR_RETURN(reservation.nodes, ExpandHosts(Text(in.node_list)));
  reservation.users = absl::StrSplit(Text(in.users), ',', absl::SkipEmpty());
  reservation.start = Seconds(in.start_time);
  reservation.end = Seconds(in.end_time);
  return reservation;
}

// One kind of list, and the state of things in which Slurm gave it last.
template <class T>
struct Cached {
  time_t last_update = 0;
  SlurmClient::List<T> list = std::make_shared<const std::vector<T>>();
};

class LibraryClient final : public SlurmClient {
 public:
  std::string Description() const override { return "libslurm " SIDING_SLURM_VERSION; }

  absl::StatusOr<List<SlurmJob>> Jobs() override {
    const auto load = [](time_t since, job_info_msg_t** message) {
      return slurm_load_jobs(since, message, kShow);
    };
    return Load(jobs_, load, &job_info_msg_t::job_array, slurm_free_job_info_msg, "jobs");
  }
  absl::StatusOr<List<SlurmNode>> Nodes() override {
    const auto load = [](time_t since, node_info_msg_t** message) {
      return slurm_load_node(since, message, kShow);
    };
    return Load(nodes_, load, &node_info_msg_t::node_array, slurm_free_node_info_msg, "nodes");
  }
  absl::StatusOr<List<SlurmPartition>> Partitions() override {
    const auto load = [](time_t since, partition_info_msg_t** message) {
      return slurm_load_partitions(since, message, kShow);
    };
    return Load(partitions_, load, &partition_info_msg_t::partition_array, slurm_free_partition_info_msg,
                "partitions");
  }
  absl::StatusOr<List<SlurmReservation>> Reservations() override {
    return Load(reservations_, slurm_load_reservations, &reserve_info_msg_t::reservation_array,
                slurm_free_reservation_info_msg, "reservations");
  }

  absl::Status Order(SlurmJobId job, SlurmOrder order) override {
    const int result = Send(job.value(), order);
    const bool gone =
        result != SLURM_SUCCESS && (errno == ESLURM_INVALID_JOB_ID || errno == ESLURM_ALREADY_DONE);
    if (order == SlurmOrder::kCancel && gone) return absl::OkStatus();
    return StatusOf(result, absl::StrCat("job ", job.value()));
  }

  absl::Status Update(SlurmJobId job, const SlurmJobChange& change) override {
    const std::string nodes = JoinHosts(change.wanted_nodes.value_or(std::vector<NodeId>()));
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    message.job_id = job.value();
    if (change.wanted_nodes) message.req_nodes = Mutable(nodes);
    if (change.reservation) message.reservation = Mutable(*change.reservation);
    if (change.admin_comment) message.admin_comment = Mutable(*change.admin_comment);
    if (change.comment) message.comment = Mutable(*change.comment);
    return StatusOf(slurm_update_job(&message), absl::StrCat("job ", job.value()));
  }

  absl::Status CreateReservation(const SlurmReservation& reservation) override {
    const std::string nodes = JoinHosts(reservation.nodes);
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
  static int Send(uint32_t job, SlurmOrder order) {
    switch (order) {
      case SlurmOrder::kSuspend:
        return slurm_suspend(job);
      case SlurmOrder::kResume:
        return slurm_resume(job);
      case SlurmOrder::kRequeue:
        return slurm_requeue(job, 0);
      case SlurmOrder::kRequeueHeld:
        return slurm_requeue(job, JOB_REQUEUE_HOLD);
      case SlurmOrder::kCancel:
        return slurm_kill_job(job, SIGKILL, 0);
      case SlurmOrder::kRelease:
        break;
    }
    job_desc_msg_t message;
    slurm_init_job_desc_msg(&message);
    message.job_id = job;
    message.priority = INFINITE;  // Slurm's word for: as it would be
    return slurm_update_job(&message);
  }

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

  Cached<SlurmJob> jobs_;
  Cached<SlurmNode> nodes_;
  Cached<SlurmPartition> partitions_;
  Cached<SlurmReservation> reservations_;
};

}  // namespace
}  // namespace siding

extern "C" __attribute__((visibility("default"))) siding::SlurmClient* siding_slurm_open(
    const char* siding_version) {
  if (std::strcmp(siding_version, SIDING_VERSION) != 0) return nullptr;
  slurm_init(nullptr);
  return new siding::LibraryClient();
}
