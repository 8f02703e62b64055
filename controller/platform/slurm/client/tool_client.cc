#include "controller/platform/slurm/client/tool_client.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "controller/platform/slurm/client/hostlist.h"
#include "controller/platform/slurm/client/queue.h"
#include "controller/platform/slurm/client/tool_output.h"

namespace siding::slurm {
namespace {

constexpr Duration kPatience = std::chrono::seconds(15);

class ToolClient final : public Client {
 public:
  explicit ToolClient(ToolRunner run) : run_(std::move(run)) {}

  std::string Description() const override { return "command-line tools"; }

  absl::StatusOr<List<QueueJob>> Jobs() override {
    return Load({"squeue", "--all", "--states=all", "--json"}, ParseQueue, jobs_);
  }
  absl::StatusOr<List<QueueNode>> Nodes() override {
    return Load({"sinfo", "--all", "--json"}, ParseNodes, nodes_);
  }
  absl::StatusOr<List<Partition>> Partitions() override {
    return Load({"scontrol", "--all", "--oneliner", "show", "partitions"}, ParsePartitions, partitions_);
  }
  absl::StatusOr<List<Reservation>> Reservations() override {
    return Load({"scontrol", "--oneliner", "show", "reservations"}, ParseReservations, reservations_);
  }

  absl::StatusOr<Settings> LoadSettings() override {
    SIDING_ASSIGN_OR_RETURN(const std::string text, Run({"scontrol", "show", "config"}));
    return ParseSettings(text);
  }

  absl::Status Do(JobNumber job, Verb verb) override {
    return Annotate(Run({"scontrol", ToString(verb), NameOf(job)}).status(),
                    absl::StrCat("job ", job.value()));
  }

  absl::Status Update(JobNumber job, const JobChange& change) override {
    std::vector<std::string> argv = {"scontrol", "update", "JobId=" + NameOf(job)};
    if (change.only_on) argv.push_back("ReqNodeList=" + JoinHostlist(*change.only_on));
    if (change.reservation) argv.push_back("ReservationName=" + *change.reservation);
    if (change.admin_comment) argv.push_back("AdminComment=" + *change.admin_comment);
    if (change.comment) argv.push_back("Comment=" + *change.comment);
    if (change.nice) argv.push_back(absl::StrCat("Nice=", *change.nice));
    return Annotate(Run(argv).status(), absl::StrCat("job ", job.value()));
  }

  absl::Status CreateReservation(const Reservation& reservation) override {
    const auto seconds = [](Time time) { return absl::StrCat("uts", ToMicros(time) / 1'000'000); };
    return Annotate(
        Run({"scontrol", "create", "reservation", "ReservationName=" + reservation.name,
             "StartTime=" + seconds(reservation.start), "EndTime=" + seconds(reservation.end),
             "Nodes=" + JoinHostlist(reservation.nodes), "Users=" + absl::StrJoin(reservation.users, ","),
             "Flags=IGNORE_JOBS,FLEX,NO_HOLD_JOBS_AFTER"})
            .status(),
        "reservation " + reservation.name);
  }

  absl::Status DeleteReservation(const std::string& name) override {
    return Annotate(Run({"scontrol", "delete", "ReservationName=" + name}).status(), "reservation " + name);
  }

 private:
  // The last element of an array that starts has the array's number, by which scontrol means all elements.
  std::string NameOf(JobNumber number) const {
    const auto named = [&](const QueueJob& job) {
      return job.id == number && job.array == number && job.array_task;
    };
    if (jobs_ != nullptr) {
      const auto last = std::find_if(jobs_->begin(), jobs_->end(), named);
      if (last != jobs_->end()) return absl::StrCat(number.value(), "_", *last->array_task);
    }
    return absl::StrCat(number.value());
  }

  absl::StatusOr<std::string> Run(const std::vector<std::string>& argv) {
    absl::StatusOr<ProgramResult> result = run_(argv);
    if (absl::IsDeadlineExceeded(result.status())) return absl::UnavailableError(result.status().message());
    if (!result.ok()) return result.status();
    if (result->exit_code == 0) return result->output;
    std::string message(absl::StripAsciiWhitespace(result->errors));
    if (message.empty()) message = absl::StrCat(argv[0], " ended with ", result->exit_code);
    return StatusOfMessage(message);
  }

  template <class T>
  absl::StatusOr<List<T>> Load(const std::vector<std::string>& argv,
                               absl::StatusOr<std::vector<T>> (*parse)(const std::string&), List<T>& last) {
    SIDING_ASSIGN_OR_RETURN(const std::string text, Run(argv));
    SIDING_ASSIGN_OR_RETURN(std::vector<T> values, parse(text));
    std::sort(values.begin(), values.end(), [](const T& a, const T& b) { return Before(a, b); });
    if (last == nullptr || *last != values) last = std::make_shared<const std::vector<T>>(std::move(values));
    return last;
  }

  ToolRunner run_;
  List<QueueJob> jobs_;
  List<QueueNode> nodes_;
  List<Partition> partitions_;
  List<Reservation> reservations_;
};

}  // namespace

ToolRunner RealTools() {
  return [](const std::vector<std::string>& argv) {
    // Seconds since 1970 instead of local times.
    return RunProgram(argv, kPatience, {{"SLURM_TIME_FORMAT", "%s"}});
  };
}

std::unique_ptr<Client> NewToolClient(ToolRunner run) { return std::make_unique<ToolClient>(std::move(run)); }

}  // namespace siding::slurm
